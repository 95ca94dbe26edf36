import type { Claim } from '../../../../src/part/claims/message.ts';
import type { SubscriptionRow } from '../../../../src/part/gate/subscription-row.ts';
import { NO_REF } from '../../../../src/part/lanes/ref.ts';
import type { DeliveryRecord } from '../../../../src/part/records/record.ts';
import { LIMITS } from '../limits.ts';

export class Violation extends Error {}

export function hold(condition: boolean, text: () => string): asserts condition {
  if (!condition) throw new Violation(text());
}

export function same(what: string, actual: unknown, expected: unknown): void {
  const [is, should] = [JSON.stringify(actual), JSON.stringify(expected)];
  hold(is === should, () => `${what}: is ${is}, should be ${should}`);
}

/** A delivery of a routed event, a replay, or a test event. */
export interface Delivery {
  readonly slot: string;
  readonly ref: string;
  /** Empty for a test event. */
  readonly groupKey: string;
  readonly replay: string | undefined;
  readonly lane: string;
  readonly entry: string;
  /** The slot, ref, and `:replay` for replays, which identify a record. */
  readonly name: string;
  /** Undefined while the delivery is open. */
  record: Pick<DeliveryRecord, 'outcome' | 'attempts' | 'endedMs' | 'reason'> | undefined;
  /** Whether the event was delivered and its record was removed along with the event. */
  forgotten: boolean;
  /** Whether the owner has recovered the dead letter. */
  recovered: boolean;
  /** The number of attempts before this. */
  earlier: number;
  /** Whether there was an attempt or an expired claim. */
  tried: boolean;
  attempts: number;
  lapses: number;
  dueMs: number;
  /** The number of failed attempts in the history. */
  failed: number;
}

export interface HeldClaim {
  readonly delivery: Delivery;
  readonly by: string;
  /** Whether the owner has ended the delivery during the attempt. */
  ended: boolean;
}

export interface StoredEvent {
  readonly ref: string;
  readonly groupKey: string;
  readonly tokens: number;
  readonly cost: number;
  /** The number of references that were written later. They have an additional cost. */
  late: number;
  /** The slots to which it was routed. */
  readonly slots: Set<string>;
}

export interface Counts {
  routed: number;
  delivered: number;
  dead: number;
  expired: number;
  skipped: number;
  replayed: number;
}

export interface Deaths {
  readonly ms: number;
  readonly first: string;
  readonly youngest: string;
}

export interface Health {
  since: number;
  failures: number;
  next: number;
  pause: number;
  disabled: string;
  probe: string;
}

/** A dispatcher, as stored in the part. */
export interface Ready {
  untilMs: number;
  limit: number;
  held: number;
  pushed: number;
  room: number;
  bytes: number;
  /** The number of its last exchange. */
  number: number;
}

/** The expected content of a part. Simple rather than fast. */
export interface Reference {
  nowMs: number;
  isReady: boolean;
  hasMarker: boolean;
  state: 'open' | 'closing';
  maxBytes: number;
  retentionMs: number;
  granted: number;
  used: number;
  /** The counts that are added to the producer's series. */
  readonly traffic: { events: number; bytes: number; delivered: number; failed: number };
  tail: string;
  hold: string | undefined;
  /** The position of the part while it is held back. */
  position: string | undefined;
  readonly events: Map<string, StoredEvent>;
  /** An event's ref, by the id that its sender has set. */
  readonly ids: Map<string, string>;
  /** The refs of all stored sender ids. */
  readonly idRefs: Set<string>;
  readonly subs: Map<string, SubscriptionRow>;
  readonly endpoints: Set<string>;
  /** The time at which the remaining data of a deleted subscription is removed, by slot. */
  readonly dropped: Map<string, number>;
  /** The position of each slot that is behind. */
  readonly positions: Map<string, string>;
  /** The ref after which a group key is active, by slot and group key. */
  readonly active: Map<string, string>;
  /** All deliveries, by entry. */
  readonly deliveries: Map<string, Delivery>;
  readonly open: Map<string, Delivery>;
  readonly claims: Map<string, HeldClaim>;
  readonly counts: Map<string, Counts>;
  readonly lists: Map<string, string[]>;
  /** The letter of the last result, and its start time, by slot. They are stored at the end of the counters. */
  readonly endings: Map<string, string>;
  /** The dead letters, by slot. They are stored in P:dead. */
  readonly deaths: Map<string, Deaths>;
  readonly health: Map<string, Health>;
  readonly ready: Map<string, Ready>;
  /** The start of recent attempts, by slot. */
  readonly starts: Map<string, number[]>;
}

export function newReference(nowMs: number): Reference {
  return {
    nowMs,
    isReady: false,
    hasMarker: false,
    state: 'open',
    maxBytes: 0,
    retentionMs: 0,
    granted: Number.POSITIVE_INFINITY,
    used: 0,
    traffic: { events: 0, bytes: 0, delivered: 0, failed: 0 },
    tail: NO_REF,
    hold: undefined,
    position: undefined,
    events: new Map(),
    ids: new Map(),
    idRefs: new Set(),
    subs: new Map(),
    endpoints: new Set(),
    dropped: new Map(),
    positions: new Map(),
    active: new Map(),
    deliveries: new Map(),
    open: new Map(),
    claims: new Map(),
    counts: new Map(),
    lists: new Map(),
    endings: new Map(),
    deaths: new Map(),
    health: new Map(),
    ready: new Map(),
    starts: new Map(),
  };
}

const NO_COUNTS: Counts = { routed: 0, delivered: 0, dead: 0, expired: 0, skipped: 0, replayed: 0 };

export function countsOf(of: Reference, slot: string): Counts {
  const counts = of.counts.get(slot) ?? { ...NO_COUNTS };
  of.counts.set(slot, counts);
  return counts;
}

export const isTest = ({ ref }: { readonly ref: string }) => ref.slice(11) >= 'ffe0';
/** Whether a delivery is neither a replay nor a test event. */
export const isFirst = (delivery: Delivery) => !isTest(delivery) && delivery.replay === undefined;
export const nameOf = (ref: string, replay?: string) => (replay === undefined ? ref : `${ref}:${replay}`);
export const flightOf = ({ claims }: Reference, slot: string) =>
  [...claims.values()].filter(({ delivery }) => delivery.slot === slot).length;
export const limitOf = ({ subs }: Reference, slot: string) => 2 * (subs.get(slot)?.cap ?? 0);
export const isClaimed = ({ claims }: Reference, delivery: Delivery) => {
  const claim = claims.get(delivery.lane);
  return claim?.delivery === delivery && !claim.ended;
};

/** Opens a delivery that waits in its lane. */
export function openDelivery(
  of: Reference,
  { slot, ref, groupKey, replay }: Pick<Delivery, 'slot' | 'ref' | 'groupKey' | 'replay'>,
): Delivery {
  const key = slot + groupKey + (replay === undefined ? '' : `\x01${replay}`);
  const entry = `${key}\0${ref}`;
  const lane = of.subs.get(slot)?.unordered === true ? entry : key;
  const fresh = {
    forgotten: false,
    recovered: false,
    earlier: 0,
    tried: false,
    attempts: 0,
    lapses: 0,
    dueMs: 0,
    failed: 0,
    record: undefined,
  };
  const name = slot + nameOf(ref, replay);
  const delivery = { slot, ref, groupKey, replay, lane, entry, name, ...fresh };
  of.deliveries.set(entry, delivery);
  of.open.set(entry, delivery);
  return delivery;
}

/** Routes an event to a slot. An event can only be routed once. */
export function route(of: Reference, event: StoredEvent, slot: string): Delivery {
  hold(!event.slots.has(slot), () => `${event.ref} is routed to ${slot} a second time`);
  event.slots.add(slot);
  of.used += event.tokens;
  countsOf(of, slot).routed++;
  of.lists.set(slot, [...(of.lists.get(slot) ?? []), event.ref]);
  return openDelivery(of, { slot, ref: event.ref, groupKey: event.groupKey, replay: undefined });
}

/** Returns the open deliveries of a lane that have not been claimed, in order. */
export function pendingOf(of: Reference, lane: string): Delivery[] {
  return [...of.open.values()]
    .filter(each => each.lane === lane && !isClaimed(of, each))
    .sort((a, b) => (a.ref < b.ref ? -1 : 1));
}

export function endDelivery(
  of: Reference,
  delivery: Delivery,
  outcome: DeliveryRecord['outcome'],
  reason: string,
  attempts = delivery.attempts,
): void {
  delivery.record = { outcome, attempts: delivery.earlier + attempts, endedMs: of.nowMs, reason };
  delivery.tried = false;
  of.open.delete(delivery.entry);
  const counts = countsOf(of, delivery.slot);
  if (!isTest(delivery)) counts[outcome]++;
  if (outcome === 'delivered' && isFirst(delivery)) of.traffic.delivered++;
}

/** Records a dead letter, which starts a new hour if there were none in the current hour. */
export function noteDeath(of: Reference, { slot, ref }: Delivery): void {
  const before = of.deaths.get(slot);
  const isNew = before === undefined || of.nowMs - before.ms >= LIMITS.hourMs;
  const { ms, first } = isNew ? { ms: of.nowMs, first: ref } : before;
  const youngest = before === undefined || ref > before.youngest ? ref : before.youngest;
  of.deaths.set(slot, { ms, first, youngest });
}

export function addFailed(delivery: Delivery): void {
  delivery.failed = Math.min(delivery.failed + 1, LIMITS.failed);
}

export const isActive = (of: Reference, { slot, groupKey }: Pick<Delivery, 'slot' | 'groupKey'>) =>
  groupKey === '' || of.active.has(slot + groupKey);

/**
 * Returns the reason why the subscription or the lane does not allow a delivery to be claimed now, or undefined if it
 * can be claimed.
 */
export function obstacleOf(of: Reference, delivery: Delivery): string | undefined {
  const { slot, lane, dueMs } = delivery;
  const row = of.subs.get(slot);
  if (row === undefined) return 'its subscription was deleted';
  if (row.send !== 'open') return 'its subscription is not open for sending';
  if (of.claims.has(lane)) return 'its lane is claimed';
  if (!isActive(of, delivery)) return 'its group key is not active';
  const head = pendingOf(of, lane)[0];
  if (head !== delivery) return `${head?.ref} comes before it`;
  if (dueMs > of.nowMs) return `it is due in ${dueMs - of.nowMs} ms`;
  return undefined;
}

/** Records the start of an attempt. Each second, the pace and the bucket limit the number of attempts. */
function checkPace(of: Reference, slot: string): void {
  const pace = of.subs.get(slot)?.maxPerSecond;
  if (pace === undefined) return;
  const starts = [...(of.starts.get(slot) ?? []), of.nowMs].filter(ms => ms > of.nowMs - 1_000);
  of.starts.set(slot, starts);
  const most = pace + Math.max(1, Math.floor(pace / 20));
  hold(starts.length <= most, () => `${starts.length} attempts of ${slot} start within a second`);
}

/** Applies and checks a claim that was created by a push or a response. */
export function takeClaim(of: Reference, claim: Claim, by: string): Delivery {
  const { slot, lane, ref, replay, attempts, lapses, behind } = claim;
  const delivery = [...of.open.values()].find(each => each.lane === lane && each.ref === ref);
  hold(delivery !== undefined, () => `${JSON.stringify(lane)} ${ref} is claimed, but not open`);
  const text = () => `the claim of ${JSON.stringify(delivery.entry)} by ${by}`;
  const obstacle = obstacleOf(of, delivery);
  hold(obstacle === undefined, () => `${text()}: ${obstacle}`);
  hold(flightOf(of, slot) < limitOf(of, slot), () => `${text()}: ${flightOf(of, slot)} attempts are in progress`);
  same(
    `${text()}: tries`,
    { attempts, lapses, replay },
    { attempts: delivery.attempts, lapses: delivery.lapses, replay: delivery.replay },
  );
  of.claims.set(lane, { delivery, by, ended: false });
  const more = pendingOf(of, lane).length > 0;
  same(`${text()}: more events behind it`, behind, more);
  checkPace(of, slot);
  return delivery;
}
