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

/** The version of the configuration that is used in the parts of runs. */
export const RUN_CFGV = 'run';
/** Since the retention is longer than a run, nothing is removed from a run before its end. */
const RETENTION_MS = 48 * 3_600_000;
/** Nothing controls the part of a run but this. */
const FENCE = 1;
/** The maximum number of changes in each call. The call delays all other commands on this Redis node. */
const CHANGES_AT_ONCE = 200;
const NAMES_AT_ONCE = 500;
/**
 * Clears the health of all endpoints. Since a run never calls a real endpoint, the results don't depend on its health.
 */
const ALWAYS_ENABLED_MS = 9_999_999_999_999;

const BEGIN: readonly GateChange[] = [
  { kind: 'begin' },
  { kind: 'marker' },
  { kind: 'meta', field: 'cfgv', value: RUN_CFGV },
  { kind: 'meta', field: 'state', value: 'open' },
  { kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) },
  // The store of runs has already checked that there is enough room.
  { kind: 'meta', field: 'maxBytes', value: String(Number.MAX_SAFE_INTEGER) },
  { kind: 'meta', field: 'ready', value: '1' },
];

/** A stream of a run. */
export interface RunStream {
  /** Production. Read-only. */
  readonly redis: PartClient;
  readonly ofRun: RunClient;
  readonly tenant: string;
  readonly queue: string;
}

/** A slot in production, in the form that it should have in the part of a run. */
interface Wanted {
  readonly row: SubscriptionRow;
  /** True if events that have been waiting during a pause should be skipped. */
  readonly skips: boolean;
}

/** If these integrations have subscriptions to a stream, this reads their `sub_….inc`. */
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

/**
 * State in production. If it is not known, this is undefined. If a stream was deleted, there is no state that we could
 * wait for.
 */
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
 * The row from production, in the format that is used for a run. If it is paused, its version is used to identify the
 * last pause that was skipped. If there is a different version for the next read, a pause has ended in between.
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

/**
 * Records all subscriptions that are new to the run. Must be done before their slots are used. Returns the slots that
 * have been recorded.
 */
async function noteMembers(stream: RunStream, slots: ReadonlyMap<string, SubscriptionRow>): Promise<string[]> {
  const { redis, ofRun, tenant, queue } = stream;
  const integrations = [...slots.values()].map(({ integration }) => integration);
  const members = await readMembers(redis, stream, integrations);
  const noted: string[] = [];
  const fields: string[] = [];
  for (const [slot, { integration }] of slots) {
    const member = members.get(integration);
    // Skip a subscription that is being replaced.
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
    // If a subscription does not exist any more, nothing else is routed or sent to it.
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
  // The slot has been stopped because of a simulated 410. The slot continues as if the owner had enabled the endpoint.
  const isStopped = row.send === 'open' && isDisabled(has?.health ?? '');
  if (!isStopped && !skips && rowText(row) === has?.row) return [];
  const change = { kind: 'row' as const, slot, row, ...(skips ? { how: 'skip' as const } : {}) };
  if (!isStopped) return [change];
  return [
    { ...change, row: { ...row, send: 'held' } },
    { kind: 'row', slot, row },
  ];
}

/** `known` contains all slots that have a row in the run. */
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

/**
 * The state that the same slots have in production and in the run. If there is no part for the run yet, `own` is
 * undefined.
 */
async function readBoth(stream: RunStream, groupKeys: readonly string[], slots: readonly string[]) {
  const there = await readProduction(stream, groupKeys, slots);
  if (there === undefined) return undefined;
  const part = partOfRun(stream.tenant, stream.queue);
  const own = await readView(stream.ofRun, part, groupKeys, new Set([...slots, ...there.slots.keys()]));
  // The slots for which a group key was active.
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
 * Copies the current state of production for a group key to the part of the run, which ensures that the next event is
 * routed in the same way. Only reads from production. If control data is missing in production, this returns false.
 */
export function takeOverKey(stream: RunStream, groupKey: string): Promise<boolean> {
  return takeOver(stream, groupKey === '' ? [] : [groupKey], []);
}

/** Like `takeOverKey`, but for all slots that have been used by the run. */
export function takeOverSlots(stream: RunStream, slots: readonly string[]): Promise<boolean> {
  return takeOver(stream, [], slots);
}

/** Like `takeOverKey`, but for all group keys and subscriptions that have been used by the run. */
export async function takeOverAll(stream: RunStream): Promise<boolean> {
  const { keys, off, subs } = partKeys(partOfRun(stream.tenant, stream.queue));
  const [active, closed, slots] = (await Promise.all(
    [keys, off, subs].map(key => stream.ofRun.call('hkeys', key)),
  )) as [string[], string[], string[]];
  // All others are the marker, and the additional lists of a group key.
  const groupKeys = active.filter(field => field !== '' && !field.includes('\0'));
  const parked = closed.map(field => field.slice(SLOT_CHARS));
  return takeOver(stream, [...new Set([...groupKeys, ...parked])], slots);
}
