import type { RedisClient } from '../../redis/client.ts';
import { tenantKeys } from '../../redis/keys.ts';
import { isTenantReady } from '../fate/fate.ts';
import { createGate, type GateChange } from '../gate/gate.ts';
import { parseRow, rowText, type SubscriptionRow } from '../gate/subscription-row.ts';
import { type PartClient, readPart } from '../inbox/find-part.ts';
import { partKeys, slotOf } from '../keys.ts';
import { NO_REF } from '../lanes/ref.ts';
import { partOfRun, type RunClient } from './run-client.ts';
import { type GateView, isDisabled, NO_VIEW, readView, SLOT_CHARS, type SlotView } from './view.ts';

/** Version of the configuration in parts of runs. */
export const RUN_CFGV = 'run';
/** Nothing of a run is removed before its end: retention reaches farther than that. */
const RETENTION_MS = 48 * 3_600_000;
/** Nothing controls the part of a run but this. */
const FENCE = 1;
/** Maximum number of changes per call. The call delays all other commands on this Redis node. */
const CHANGES_AT_ONCE = 200;
const NAMES_AT_ONCE = 500;
/** Clears the health of endpoints. A run never calls real endpoints, so the results don't say anything about them. */
const ALWAYS_ENABLED_MS = 9_999_999_999_999;

const BEGIN: readonly GateChange[] = [
  { kind: 'begin' },
  { kind: 'marker' },
  { kind: 'meta', field: 'cfgv', value: RUN_CFGV },
  { kind: 'meta', field: 'state', value: 'open' },
  { kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) },
  // The store of runs has said that there is room.
  { kind: 'meta', field: 'maxBytes', value: String(Number.MAX_SAFE_INTEGER) },
  { kind: 'meta', field: 'ready', value: '1' },
];

/** A stream in a run. */
export interface RunStream {
  /** Production. Read-only. */
  readonly redis: PartClient;
  readonly ofRun: RunClient;
  readonly tenant: string;
  readonly queue: string;
}

/** A slot of production, as a part of a run is to have it. */
interface Wanted {
  readonly row: SubscriptionRow;
  /** Whether events that waited during a pause are skipped. */
  readonly skips: boolean;
}

/** Reads `sub_….inc` of the subscriptions of these integrations to a stream, if they have one. */
async function readMembers(
  redis: Pick<RedisClient, 'call'>,
  { tenant, queue }: RunStream,
  integrations: readonly string[],
): Promise<Map<string, string>> {
  const members = new Map<string, string>();
  for (let at = 0; at < integrations.length; at += NAMES_AT_ONCE) {
    const some = integrations.slice(at, at + NAMES_AT_ONCE);
    const found = (await redis.call('hmget', tenantKeys(tenant).subs(queue), ...some)) as (string | null)[];
    for (const [i, member] of found.entries()) if (member !== null) members.set(some[i] as string, member);
  }
  return members;
}

/** State in production. Undefined while unknown. A deleted stream has no state to wait for. */
async function readProduction(
  { redis, tenant, queue }: RunStream,
  groupKeys: readonly string[],
  slots: readonly string[],
): Promise<GateView | undefined> {
  const [isReady, part] = await Promise.all([isTenantReady(redis, tenant), readPart(redis, tenant, queue)]);
  if (!isReady) return undefined;
  const view = part && (await readView(redis, part, groupKeys, slots));
  if (view !== undefined) return view;
  return (await redis.call('hexists', tenantKeys(tenant).index, `q:${queue}`)) === 0 ? NO_VIEW : undefined;
}

const isSlotOf = (slot: string, member: string) => {
  const [sub = '', inc = ''] = member.split('.', 2);
  return slotOf(sub, inc) === slot;
};

/**
 * Row of production in the format of a run. While paused, its version identifies the last skipped pause. A different
 * version on the next read means that a pause has ended in between.
 */
function wantedOf(
  stored: SubscriptionRow | undefined,
  row: SubscriptionRow,
  { health, hasEndpoint, skipped }: SlotView,
): Wanted {
  const { route, unordered, cap, integration } = row;
  const send = hasEndpoint && !isDisabled(health, row) ? row.send : 'held';
  const cfgv = route === 'paused' ? skipped : '';
  const own = { route, send, unordered, cap, enabledMs: ALWAYS_ENABLED_MS, since: NO_REF, cfgv, integration } as const;
  return { row: own, skips: stored?.route === 'paused' && skipped !== '' && stored.cfgv !== skipped };
}

/** Records subscriptions that are new to the run before their slots are used. Returns the slots it recorded. */
async function noteMembers(stream: RunStream, slots: ReadonlyMap<string, SubscriptionRow>): Promise<string[]> {
  const { redis, ofRun, tenant, queue } = stream;
  const integrations = [...slots.values()].map(({ integration }) => integration);
  const members = await readMembers(redis, stream, integrations);
  const noted: string[] = [];
  const fields: string[] = [];
  for (const [slot, { integration }] of slots) {
    const member = members.get(integration);
    // It is being replaced.
    if (member === undefined || !isSlotOf(slot, member)) continue;
    noted.push(slot);
    fields.push(integration, member);
  }
  await ofRun.note('HSET', tenantKeys(tenant).subs(queue), fields);
  return noted;
}

function rowsOf({ slots }: GateView): Map<string, SubscriptionRow> {
  const rows = new Map<string, SubscriptionRow>();
  for (const [slot, { row }] of slots) {
    const parsed = parseRow(row);
    if (parsed !== undefined) rows.set(slot, parsed);
  }
  return rows;
}

async function rowChanges(stream: RunStream, there: GateView, own: GateView): Promise<GateChange[]> {
  const [rows, stored] = [rowsOf(there), rowsOf(own)];
  const known = [...rows.keys()].filter(slot => stored.has(slot));
  const added = await noteMembers(stream, new Map([...rows].filter(([slot]) => !stored.has(slot))));
  const changes: GateChange[] = [];
  for (const [slot, row] of stored) {
    // Nothing more is routed to a subscription that is gone, nor sent.
    const closed = { ...row, route: 'closed' as const, send: 'held' as const };
    if (!rows.has(slot) && rowText(closed) !== rowText(row)) changes.push({ kind: 'row', slot, row: closed });
  }
  for (const slot of [...known, ...added]) {
    const [seen, has] = [there.slots.get(slot) as SlotView, own.slots.get(slot)];
    const wanted = wantedOf(stored.get(slot), rows.get(slot) as SubscriptionRow, seen);
    changes.push(...slotChanges(slot, wanted, has));
  }
  return changes;
}

function slotChanges(slot: string, { row, skips }: Wanted, has: SlotView | undefined): GateChange[] {
  // A simulated answer of 410 has stopped the slot. It goes on as if its owner had enabled the endpoint.
  const isStopped = row.send === 'open' && isDisabled(has?.health ?? '');
  if (!isStopped && !skips && rowText(row) === has?.row) return [];
  const change = { kind: 'row' as const, slot, row, ...(skips ? { how: 'skip' as const } : {}) };
  if (!isStopped) return [change];
  return [
    { ...change, row: { ...row, send: 'held' } },
    { kind: 'row', slot, row },
  ];
}

/** `known` contains the slots with a row in the run. */
function activationChanges(
  there: GateView,
  own: GateView,
  groupKey: string,
  known: (slot: string) => boolean,
): GateChange[] {
  const [wanted, active] = [there, own].map(({ active }) => active.get(groupKey) ?? new Set<string>()) as [
    ReadonlySet<string>,
    ReadonlySet<string>,
  ];
  const changes: GateChange[] = [];
  // Counts from now on: events that the run had before were not accepted for it.
  for (const slot of wanted) if (!active.has(slot) && known(slot)) changes.push({ kind: 'on', slot, groupKey });
  for (const slot of active) if (!wanted.has(slot)) changes.push({ kind: 'off', slot, groupKey });
  return changes;
}

async function write({ ofRun, tenant, queue }: RunStream, changes: readonly GateChange[]): Promise<void> {
  const gate = createGate(ofRun);
  for (let at = 0; at < changes.length; at += CHANGES_AT_ONCE) {
    const slice = changes.slice(at, at + CHANGES_AT_ONCE);
    for (let more = true; more; ) {
      const answer = await gate(partOfRun(tenant, queue), FENCE, slice);
      if (answer.answer !== 'OK') throw new Error(`the part of a run answered ${answer.answer}`);
      more = answer.more;
    }
  }
}

/** State of the same slots in production and in the run. `own` is undefined if the run has no part yet. */
async function readBoth(stream: RunStream, groupKeys: readonly string[], slots: readonly string[]) {
  const there = await readProduction(stream, groupKeys, slots);
  if (there === undefined) return undefined;
  const part = partOfRun(stream.tenant, stream.queue);
  const own = await readView(stream.ofRun, part, groupKeys, new Set([...slots, ...there.slots.keys()]));
  // Slots that a group key was active for.
  const former = [...(own?.slots.keys() ?? [])].filter(slot => !there.slots.has(slot));
  const rest = former.length === 0 ? NO_VIEW : await readProduction(stream, [], former);
  return rest && { there: { ...there, slots: new Map([...there.slots, ...rest.slots]) }, own };
}

async function takeOver(stream: RunStream, groupKeys: readonly string[], slots: readonly string[]): Promise<boolean> {
  const both = await readBoth(stream, groupKeys, slots);
  if (both === undefined) return false;
  if (both.own === undefined) await write(stream, BEGIN);
  const { there, own = NO_VIEW } = both;
  const rows = await rowChanges(stream, there, own);
  const added = new Set(rows.map(change => (change.kind === 'row' ? change.slot : '')));
  const known = (slot: string) => added.has(slot) || (own.slots.get(slot)?.row ?? '') !== '';
  const activations = groupKeys.flatMap(groupKey => activationChanges(there, own, groupKey, known));
  await write(stream, [...rows, ...activations]);
  return true;
}

/**
 * Copies the current production state for a group key to the part of the run, so that the next event is routed the same
 * way. Only reads from production. Returns false if control data is missing there.
 */
export function takeOverKey(stream: RunStream, groupKey: string): Promise<boolean> {
  return takeOver(stream, groupKey === '' ? [] : [groupKey], []);
}

/** The same for slots that the run has met. */
export function takeOverSlots(stream: RunStream, slots: readonly string[]): Promise<boolean> {
  return takeOver(stream, [], slots);
}

/** The same for all group keys and subscriptions that the run has met. */
export async function takeOverAll(stream: RunStream): Promise<boolean> {
  const { keys, off, subs } = partKeys(partOfRun(stream.tenant, stream.queue));
  const [active, closed, slots] = (await Promise.all(
    [keys, off, subs].map(key => stream.ofRun.call('hkeys', key)),
  )) as [string[], string[], string[]];
  // The others are the marker, and the further lists of a group key.
  const groupKeys = active.filter(field => field !== '' && !field.includes('\0'));
  const parked = closed.map(field => field.slice(SLOT_CHARS));
  return takeOver(stream, [...new Set([...groupKeys, ...parked])], slots);
}
