import type { AdvanceAnswer } from '../../../../src/part/catchup/advance.ts';
import { msOfRef } from '../../../../src/part/lanes/ref.ts';
import { cutOf, type Dump, firstHourOfIds } from '../dump.ts';
import { type Delivery, endDelivery, hold, isTest, type Reference, route, same } from './reference.ts';
import { isFor, slotsOf } from './routing.ts';

const HOUR_MS = 3_600_000;

/** Returns the position up to which a slot is routed. */
const positionIn = (of: Reference, slot: string) =>
  of.positions.get(slot) ?? (of.hold === undefined ? of.tail : (of.position ?? ''));

const laterIn = (of: Reference, ref: string) => [...of.events.values()].filter(each => each.ref > ref);

/**
 * Applies the result of a call, which decides how far to move each slot. Checks that positions did not skip any
 * routable events, and that routed events are not after the position.
 */
export function advance(of: Reference, answer: AdvanceAnswer, after: Dump): void {
  same('answer', answer.answer, of.isReady && of.hasMarker ? 'OK' : 'CLOSED');
  if (answer.answer !== 'OK') return;
  const before = new Map([...of.subs.keys()].map(slot => [slot, positionIn(of, slot)]));
  const routed: Delivery[] = [];
  for (const event of of.events.values()) {
    for (const slot of after.late.get(event.ref) ?? []) {
      if (event.slots.has(slot) && (after.late.get(event.ref) ?? []).filter(each => each === slot).length === 1)
        continue;
      const may =
        of.subs.get(slot)?.route === 'open' && event.ref > (before.get(slot) ?? 'g') && isFor(of, event, slot);
      hold(may, () => `${event.ref} must not be routed to ${slot}`);
      routed.push(route(of, event, slot));
      event.late++;
    }
  }
  same('references', answer.references, routed.length);
  of.positions.clear();
  for (const [slot, position] of after.positions) of.positions.set(slot, position);
  of.hold = after.meta.get('hold');
  of.position = after.meta.get('pos');
  same('hold', answer.hold, of.hold);
  for (const [slot, from] of before) checkPassed(of, slot, from);
  const next = nextOfPart(of);
  for (const { slot, ref } of routed) {
    const isPassed = ref <= positionIn(of, slot) || ref === next;
    hold(isPassed, () => `${ref} is routed to ${slot}, and its position is before it`);
  }
  hold(of.used <= of.granted, () => `${of.used} tokens are used, ${of.granted} granted`);
  if (answer.more) return;
  if (of.hold === undefined) {
    const behind = [...of.positions.keys()].filter(slot => of.subs.get(slot)?.route === 'open');
    same('open slots that are behind when there is no more to do', behind, []);
    return;
  }
  same('why the part is held when there is no more to do', of.hold, 'tokens');
}

/** Returns the event before which the part is held back. */
const nextOfPart = (of: Reference) => (of.hold === undefined ? undefined : laterIn(of, of.position ?? '')[0]?.ref);

function checkPassed(of: Reference, slot: string, from: string): void {
  const to = positionIn(of, slot);
  hold(to >= from, () => `the position of ${slot} goes back from ${from} to ${to}`);
  const how = of.subs.get(slot)?.route;
  if (how === 'closed') return;
  if (how === 'paused') same(`position of ${slot}, which is paused`, to, from);
  else {
    for (const event of laterIn(of, from)) {
      const isMissed = event.ref <= to && isFor(of, event, slot) && !event.slots.has(slot);
      hold(!isMissed, () => `the position of ${slot} is after ${event.ref}, which was not routed`);
    }
  }
}

/** Removes a delivery without a record, for example for a deleted subscription. */
function forget(of: Reference, delivery: Delivery): void {
  of.open.delete(delivery.entry);
  of.deliveries.delete(delivery.entry);
}

/**
 * Removes the records of delivered events that were removed, and of old replays.
 * @param removed the events removed by this call
 */
function forgetRecords(of: Reference, removed: ReadonlySet<string>, kept: ReadonlySet<string>, after: Dump): void {
  for (const [name, records] of after.records) {
    const isLeft = removed.has(name.slice(8)) && records.some(({ outcome }) => outcome === 'delivered');
    hold(!isLeft, () => `the event of ${name} is removed, but not its record`);
  }
  for (const delivery of of.deliveries.values()) {
    const { name, slot, ref, replay, record } = delivery;
    if (!of.subs.has(slot) || delivery.forgotten || record?.outcome !== 'delivered' || after.records.has(name))
      continue;
    // Records are removed in slices, before their events.
    const isRemoved = replay !== undefined || !kept.has(ref) || ref <= cutOf(after);
    const isOld = msOfRef(ref) < of.nowMs - of.retentionMs && isRemoved;
    hold(isOld && !isTest(delivery), () => `the record of ${name} is removed early`);
    delivery.forgotten = true;
  }
}

/** Removes ids of senders by hour, 25 hours after the end of the hour. */
function forgetIds(of: Reference, after: Dump): void {
  const first = firstHourOfIds(after) ?? Number.POSITIVE_INFINITY;
  for (const ref of of.idRefs) {
    const hour = Math.floor(msOfRef(ref) / HOUR_MS);
    if (hour >= first) continue;
    hold(of.nowMs >= (hour + 26) * HOUR_MS, () => `the id of ${ref} is removed early`);
    of.idRefs.delete(ref);
  }
}

/**
 * Applies the result of a sweep, which removes data in slices. Checks that all removed data was old enough and had
 * ended.
 */
export function sweep(of: Reference, expired: number, after: Dump): void {
  const cutMs = of.nowMs - of.retentionMs;
  let ended = 0;
  for (const delivery of Array.from(of.open.values())) {
    const isGone = !of.subs.has(delivery.slot);
    const claim = after.claims.get(delivery.lane);
    const isHeld = claim?.slice(1, 16) === delivery.ref && !claim.startsWith('x');
    if (after.pending.has(delivery.entry) || isHeld) continue;
    // An attempt in progress holds its lane until it is over.
    const held = of.claims.get(delivery.lane);
    if (held?.delivery === delivery) held.ended = true;
    if (isGone) {
      forget(of, delivery);
      continue;
    }
    hold(msOfRef(delivery.ref) < cutMs, () => `${delivery.entry} is removed ${msOfRef(delivery.ref) - cutMs} ms early`);
    endDelivery(of, delivery, 'expired', 'retention');
    ended++;
  }
  same('expired', expired, ended);
  for (const [slot, position] of of.positions) {
    const to = after.positions.get(slot);
    if (to === undefined || to === position) continue;
    hold(to > position && msOfRef(to) < cutMs, () => `the position of ${slot} moves from ${position} to ${to}`);
    of.positions.set(slot, to);
  }
  const position = after.meta.get('pos');
  if (of.hold !== undefined && position !== of.position) {
    hold(position !== undefined && msOfRef(position) < cutMs, () => `the part moves to ${position}`);
    of.position = position;
  }
  const kept = new Set(after.log.map(({ ref }) => ref));
  const removed = new Set<string>();
  for (const [ref, { groupKey }] of of.events) {
    if (kept.has(ref)) continue;
    removed.add(ref);
    hold(msOfRef(ref) < cutMs, () => `${ref} is removed ${msOfRef(ref) - cutMs} ms early`);
    of.events.delete(ref);
    for (const delivery of of.open.values()) {
      // An attempt of a replay may end after the data of a deleted subscription was removed. In this case, it is
      // removed again.
      const isForgotten = delivery.replay !== undefined && !of.subs.has(delivery.slot);
      const stays = delivery.ref === ref && !isTest(delivery) && !isForgotten;
      hold(!stays, () => `${delivery.entry} is open, but its event was removed`);
    }
    for (const slot of slotsOf(of, groupKey)) {
      const isBehind = positionIn(of, slot) < ref;
      hold(!isBehind, () => `${ref} is removed, and ${slot} is before it`);
    }
  }
  forgetRecords(of, removed, kept, after);
  forgetIds(of, after);
}
