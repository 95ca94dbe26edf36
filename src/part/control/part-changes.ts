import { type OpenKeySource, openKeysOf } from '../../record/open-keys.ts';
import type { Steps } from '../../time/slices.ts';
import type { GateChange, MetaField } from '../gate/gate.ts';
import { parseRow, rowText, type SubscriptionRow } from '../gate/subscription-row.ts';
import { refOfMs } from '../lanes/ref.ts';
import type { StoredPart } from './stored-part.ts';
import type { WantedPart, WantedSlot } from './wanted-part.ts';

/**
 * Returns the open group keys of each integration (`int_…`). Keys are only read for the integrations that need them.
 */
export type OpenKeys = () => OpenKeySource;

/** The slots whose backlog should be skipped after their pause. */
export type Skipping = ReadonlySet<string>;

const NONE: ReadonlySet<string> = new Set();

const EMPTY: StoredPart = {
  meta: {},
  rows: new Map(),
  endpoints: new Map(),
  isMarked: false,
  activations: NONE,
  damaged: [],
  unparking: [],
};

/**
 * If the row has changed, this returns the change.
 *
 * @param isSkipping whether the backlog of a pause is skipped when it ends
 */
function rowChange(
  slot: string,
  stored: string | undefined,
  row: SubscriptionRow,
  isSkipping: boolean,
): GateChange | undefined {
  if (stored === rowText(row)) return undefined;
  const skips = isSkipping && parseRow(stored ?? '')?.route === 'paused';
  return { kind: 'row', slot, row, ...(skips ? { how: 'skip' as const } : {}) };
}

/** The changes to a part, in the order in which they need to be written. */
export interface PartChanges {
  /**
   * The changes to the part itself and to its rows. A subscription added to an existing part starts out paused. From
   * this point on, its events are kept. The events are routed when the activations of the slot are complete.
   */
  readonly before: readonly GateChange[];
  /** Added slots. The activations of added slots start at the tail that `before` has returned. */
  readonly added: ReadonlySet<string>;
  readonly activations: readonly (GateChange & { readonly slot: string })[];
  readonly after: readonly GateChange[];
}

function metaChanges(stored: StoredPart, { meta }: WantedPart): GateChange[] {
  return Object.entries(meta).flatMap(([field, value]) =>
    (stored.meta[field] ?? '') === value ? [] : [{ kind: 'meta' as const, field: field as MetaField, value }],
  );
}

function slotChanges(
  { rows, endpoints }: StoredPart,
  [slot, wanted]: readonly [string, WantedSlot],
  skipping: Skipping,
): { readonly before: readonly GateChange[]; readonly after: readonly GateChange[] } {
  const change = rowChange(slot, rows.get(slot), wanted.row, skipping.has(slot));
  const endpoint: GateChange[] =
    (endpoints.get(slot) ?? '') === wanted.endpoint ? [] : [{ kind: 'endpoint', slot, sealed: wanted.endpoint }];
  if (change === undefined) return { before: endpoint, after: [] };
  if (rows.has(slot) || wanted.row.route !== 'open') return { before: [...endpoint, change], after: [] };
  return { before: [...endpoint, { kind: 'row', slot, row: { ...wanted.row, route: 'paused' } }], after: [change] };
}

/** If the stored activations are unknown, only writes activations of new slots. */
function* activationChanges(
  { activations: known, rows, unparking }: StoredPart,
  { slots }: WantedPart,
  openKeys: OpenKeys,
): Steps<PartChanges['activations']> {
  const changes: (GateChange & { readonly slot: string })[] = unparking.map(active => ({
    kind: 'unpark',
    slot: active.slice(0, 8),
    groupKey: active.slice(8),
  }));
  const activations = known ?? NONE;
  const wanted = new Set<string>();
  for (const [slot, { integration }] of slots) {
    if (known === undefined && rows.has(slot)) continue;
    for (const { groupKey, sinceMs } of yield* openKeysOf(openKeys(), integration)) {
      yield;
      const active = slot + groupKey;
      wanted.add(active);
      if (activations.has(active)) continue;
      changes.push({ kind: 'on', slot, groupKey, since: refOfMs(sinceMs) });
    }
  }
  for (const active of activations) {
    yield;
    if (!wanted.has(active)) changes.push({ kind: 'off', slot: active.slice(0, 8), groupKey: active.slice(8) });
  }
  return changes;
}

/** Returns the state that is stored for a part after `wanted` has been written. Does not include activations. */
export function storedAs({ part, meta, slots }: WantedPart): StoredPart {
  return {
    meta: { ...meta, gen: part.gen, ready: '1' },
    rows: new Map([...slots].map(([slot, { row }]) => [slot, rowText(row)])),
    endpoints: new Map([...slots].map(([slot, { endpoint }]) => [slot, endpoint])),
    isMarked: true,
    activations: undefined,
    damaged: [],
    unparking: [],
  };
}

/**
 * Returns the changes that are needed to bring a part to its desired state. If there are no changes, this is empty.
 * There may be 100,000 activations.
 */
export function* planPart(
  stored: StoredPart | undefined,
  wanted: WantedPart,
  openKeys: OpenKeys,
  skipping: Skipping,
): Steps<PartChanges> {
  const isBegun = stored?.meta.gen === wanted.part.gen;
  // Everything else is of this generation anyway.
  const have = stored === undefined || isBegun ? (stored ?? EMPTY) : { ...stored, meta: {} };
  const slots = [...wanted.slots].map(each => slotChanges(have, each, skipping));
  const drops = [...have.rows.keys()].filter(slot => !wanted.slots.has(slot));
  const stray = [...have.endpoints.keys()].filter(slot => !wanted.slots.has(slot) && !have.rows.has(slot));
  const isDamaged = have.damaged.length > 0;
  const before: GateChange[] = [
    ...(isBegun ? [] : [{ kind: 'begin' as const }]),
    ...(have.meta.was === wanted.part.gen ? [{ kind: 'progress' as const, field: 'was' as const, value: '' }] : []),
    ...metaChanges(have, wanted),
    // Until they have been written again, events are only kept.
    ...(isDamaged ? [{ kind: 'unmark' as const }] : []),
    ...have.damaged.map(field => ({ kind: 'clear' as const, field })),
    ...stray.map(slot => ({ kind: 'endpoint' as const, slot, sealed: '' })),
    ...drops.map(slot => ({ kind: 'drop' as const, slot })),
    ...slots.flatMap(({ before }) => before),
  ];
  const opened = slots.flatMap(({ after }) => after);
  const isReady = have.meta.ready === '1' && have.isMarked && !isDamaged;
  // When the marker is set, the part counts its rows again. Needed if a row is damaged, because the row was counted
  // before.
  const isRepaired = stored?.activations !== undefined && before.length + opened.length > 0;
  return {
    before,
    added: new Set([...wanted.slots.keys()].filter(slot => !have.rows.has(slot))),
    activations: yield* activationChanges(have, wanted, openKeys),
    after: [
      ...opened,
      ...(isReady && !isRepaired ? [] : [{ kind: 'marker' as const }]),
      ...(isReady ? [] : [{ kind: 'meta' as const, field: 'ready' as const, value: '1' }]),
    ],
  };
}
