import type { Claim, Push } from '../../../../src/part/claims/message.ts';
import type { GateChange } from '../../../../src/part/gate/gate.ts';
import { rowText, type SubscriptionRow } from '../../../../src/part/gate/subscription-row.ts';
import { msOfRef } from '../../../../src/part/lanes/ref.ts';
import { bytesInHash } from '../../../../src/part/log/body-pieces.ts';
import type { EventAnswer, PartEvent } from '../../../../src/part/log/ingest.ts';
import { type Dump, openBytesOf } from '../dump.ts';
import { LIMITS } from '../limits.ts';
import { hold, type Reference, route, type StoredEvent, same, takeClaim } from './reference.ts';

const DAY_MS = 86_400_000;
const LAST_SEQUENCE = 0xffdf;
export const tokensOf = (bytes: number) => Math.ceil(Math.max(1, bytes) / 16_384);
/** Returns the cost of an event. Must be the same as in `log/cost.lua`. */
function costOf({ body, meta, groupKey }: PartEvent, references: number): number {
  const stored = bytesInHash(body.length);
  // Redis stores a larger body in blocks of its power of two.
  const step = stored < 2_048 ? 1 : 2 ** (29 - Math.clz32(stored + 5));
  const blocks = stored < 2_048 ? stored : Math.ceil((stored + 6) / step) * step;
  return blocks + body.length - stored + meta.length + Buffer.byteLength(groupKey) + 250 + 45 * references;
}
export const lateCost = (references: number) => (references === 0 ? 0 : 60 + 45 * references);
const ID_COST = 115;
const OPEN_COST = 450;

export const slotsOf = (of: Reference, groupKey: string) =>
  groupKey === '' ? [] : [...of.active.keys()].filter(each => each.slice(8) === groupKey).map(each => each.slice(0, 8));

function nextRef({ tail, nowMs }: Reference): string {
  const [ms, sequence] = [msOfRef(tail), Number.parseInt(tail.slice(11), 16)];
  const [at, number] = nowMs > ms ? [nowMs, 0] : sequence < LAST_SEQUENCE ? [ms, sequence + 1] : [ms + 1, 0];
  return at.toString(16).padStart(11, '0') + number.toString(16).padStart(4, '0');
}

/** Returns the number of used bytes of a part's quota. */
const usedBytes = (of: Reference, before: Dump) =>
  [...of.events.values()].reduce((sum, { cost, late }) => sum + cost + lateCost(late), 0) +
  ID_COST * of.idRefs.size +
  before.failedBytes +
  openBytesOf(before);

/** Returns the number of fields of a group key. An event with more fields than a call may write is held back. */
function fieldsOf(before: Dump, groupKey: string): number {
  const first = before.keys.get(groupKey) ?? '';
  return first.length % 23 === 3 ? Number(first.slice(-3)) : 1;
}

/**
 * Returns the number of events that a call stores. The number of references is limited, but at least one event is
 * stored.
 */
function prefixOf(of: Reference, events: readonly PartEvent[], hasManyFields: (groupKey: string) => boolean): number {
  let references = 0;
  for (const [at, { groupKey }] of events.entries()) {
    if (!hasManyFields(groupKey)) references += slotsOf(of, groupKey).length;
    if (references > LIMITS.references && at > 0) return at;
  }
  return events.length;
}

/** Stores events and returns the expected response. The pushes contain the claimable lanes. */
export function ingest(of: Reference, events: readonly PartEvent[], before: Dump): EventAnswer[] | 'GONE' | 'CLOSED' {
  if (!of.isReady) return 'GONE';
  if (of.state !== 'open') return 'CLOSED';
  const hasManyFields = (groupKey: string) => (fieldsOf(before, groupKey) - 1) * LIMITS.group > LIMITS.references;
  const isWide = (groupKey: string) => hasManyFields(groupKey) || slotsOf(of, groupKey).length > LIMITS.references;
  let count = events.length;
  if (of.hold === undefined && of.hasMarker) count = prefixOf(of, events, hasManyFields);
  const { hold: wasHeld, position: wasAt } = of;
  if (of.hold === undefined && !of.hasMarker) {
    of.position = of.tail;
    of.hold = 'gates';
  }
  let [stored, opened] = [0, 0];
  const answers = events.slice(0, count).map((event): EventAnswer => {
    const known = event.senderId === undefined ? undefined : of.ids.get(event.senderId);
    if (known !== undefined && of.nowMs - msOfRef(known) < DAY_MS) return { answer: 'DUP', ref: known };
    const wide = isWide(event.groupKey);
    const live = slotsOf(of, event.groupKey).filter(
      slot => of.subs.get(slot)?.route === 'open' && !of.positions.has(slot),
    );
    let slots = of.hold === undefined && !wide ? live : [];
    const idCost = event.senderId === undefined ? 0 : ID_COST;
    const openCost = OPEN_COST * (opened + slots.length);
    if (usedBytes(of, before) + costOf(event, slots.length) + openCost + idCost > of.maxBytes)
      return { answer: 'FULL' };
    const tokens = tokensOf(event.body.length);
    if (of.hold === undefined && (wide || of.used + tokens * slots.length > of.granted)) {
      of.hold = wide ? 'wide' : 'tokens';
      of.position = of.tail;
      slots = [];
    }
    const ref = nextRef(of);
    of.tail = ref;
    stored++;
    of.traffic.events++;
    of.traffic.bytes += event.body.length;
    const cost = costOf(event, slots.length);
    const entry = { ref, groupKey: event.groupKey, tokens, cost, late: 0, slots: new Set<string>() };
    of.events.set(ref, entry);
    if (event.senderId !== undefined) {
      of.ids.set(event.senderId, ref);
      of.idRefs.add(ref);
    }
    for (const slot of slots) route(of, entry, slot);
    opened += slots.length;
    return { answer: 'OK', ref };
  });
  if (stored === 0) [of.hold, of.position] = [wasHeld, wasAt];
  return answers;
}

/**
 * Applies and checks pushed claims. Each of them must be the first event of an idle lane, in a slot without waiting
 * events.
 */
export function takePushed(of: Reference, pushes: readonly Push[], before: Dump, after: Dump): void {
  for (const push of pushes) {
    const claims: readonly Claim[] = push.events.flatMap(each => each.claims);
    if (claims.length === 0) continue;
    const by = push.dispatcher as string;
    const ready = of.ready.get(by);
    hold(ready !== undefined && ready.untilMs > of.nowMs, () => `${by} receives a push, but is not running`);
    hold(claims.length <= ready.limit - ready.held, () => `${by} receives ${claims.length} claims, but has no room`);
    for (const claim of claims) {
      const [, , waiting] = (before.counts.get(claim.slot) ?? '0 0 0').split(' ');
      same(`waiting events of ${claim.slot}, which receives a push`, waiting, '0');
      const first = [...of.open.values()]
        .filter(each => each.lane === claim.lane)
        .map(({ ref }) => ref)
        .sort()[0];
      same(`the first of ${claim.lane}`, claim.ref, first);
      hold(of.subs.get(claim.slot)?.maxPerSecond === undefined, () => `${claim.slot} has a pace, but receives a push`);
      takeClaim(
        of,
        { ...claim, behind: [...of.open.values()].filter(each => each.lane === claim.lane).length > 1 },
        by,
      );
    }
    ready.held += claims.length;
    ready.pushed += claims.length;
    same(`pushed to ${by}`, push.pushed, ready.pushed);
    const grown = push.bytes - ready.bytes;
    hold(grown > 0, () => `${by} receives ${grown} bytes`);
    ready.bytes = push.bytes;
    ready.room -= grown;
    const text = after.ready.get(by)?.split(' ');
    same(`room of ${by}`, Number(text?.[4]), ready.room);
  }
}

/** Returns the position of a live slot. It may already have an event that is routed in slices. */
function routedTo(of: Reference, slot: string): string {
  if (of.hold === undefined) return of.tail;
  const position = of.position as string;
  const next = [...of.events.values()].find(({ ref }) => ref > position);
  return next?.slots.has(slot) && isFor(of, next, slot) ? next.ref : position;
}

function setRow(of: Reference, slot: string, row: SubscriptionRow, how: 'behind' | 'skip' | undefined): number {
  const before = of.subs.get(slot);
  const was = before?.route ?? 'closed';
  const position = of.positions.get(slot);
  const fromNow = () => (of.hold === undefined ? of.positions.delete(slot) : of.positions.set(slot, of.tail));
  if (row.route === 'closed') of.positions.delete(slot);
  else if (was === 'closed') {
    if (how === 'behind' || row.route === 'paused') of.positions.set(slot, of.tail);
    else fromNow();
  } else if (was === 'open' && row.route === 'paused') {
    if (position === undefined) of.positions.set(slot, routedTo(of, slot));
  } else if (was === 'paused' && how === 'skip') {
    if (row.route === 'open') fromNow();
    else of.positions.set(slot, of.tail);
  } else if (was === 'paused' && row.route === 'open' && of.hold === undefined && position === of.tail) {
    of.positions.delete(slot);
  }
  of.subs.set(slot, row);
  // Data before an endpoint was enabled is ignored, which is detected by the next check.
  return before !== undefined && rowText(before) === rowText(row) ? 0 : 1;
}

const setMember = <T>(set: Set<T>, value: T, isIn: boolean) => {
  const changes = set.has(value) !== isIn;
  if (isIn) set.add(value);
  else set.delete(value);
  return changes ? 1 : 0;
};

function setMeta(of: Reference, field: string, value: string): number {
  const swap = <T>(before: T, after: T) => (before === after ? 0 : 1);
  if (field === 'ready') {
    const changes = swap(of.isReady, value === '1');
    of.isReady = value === '1';
    return changes;
  }
  if (field === 'state') {
    const changes = swap(of.state, value);
    of.state = value as 'open';
    return changes;
  }
  if (field === 'granted') {
    const granted = value === '' ? Number.POSITIVE_INFINITY : Number(value);
    const changes = swap(of.granted, granted);
    of.granted = granted;
    return changes;
  }
  const number = field as 'maxBytes' | 'retentionMs';
  const changes = swap(of[number], Number(value));
  of[number] = Number(value);
  return changes;
}

/** Applies a change of the gate. Returns the number of changes. */
export function change(of: Reference, each: GateChange): number {
  switch (each.kind) {
    case 'begin':
      return 0;
    case 'marker': {
      const changes = of.hasMarker ? 0 : 1;
      of.hasMarker = true;
      return changes;
    }
    case 'meta':
      return setMeta(of, each.field, each.value);
    case 'row':
      return setRow(of, each.slot, each.row, each.how);
    case 'endpoint':
      return setMember(of.endpoints, each.slot, each.sealed !== '');
    case 'drop': {
      const changes = (of.subs.delete(each.slot) ? 1 : 0) + setMember(of.endpoints, each.slot, false);
      of.positions.delete(each.slot);
      if (!of.dropped.has(each.slot))
        of.dropped.set(each.slot, of.nowMs + (each.how === 'delete' ? 0 : of.retentionMs));
      return changes;
    }
    case 'on': {
      const key = each.slot + each.groupKey;
      if (of.active.has(key) || !of.subs.has(each.slot)) return 0;
      of.active.set(key, each.since ?? of.tail);
      return 1;
    }
    case 'off':
      return of.active.delete(each.slot + each.groupKey) ? 1 : 0;
    default:
      throw new Error(`random histories do not contain the change ${each.kind}`);
  }
}

/** Returns whether an event is routed to a slot that was behind. */
export function isFor(of: Reference, event: StoredEvent, slot: string): boolean {
  const since = of.active.get(slot + event.groupKey);
  return since !== undefined && since < event.ref && (of.subs.get(slot)?.since ?? 'g') < event.ref;
}
