import { cutOf, type Dump } from '../dump.ts';
import { isDisabled } from './health.ts';
import {
  addFailed,
  countsOf,
  type Delivery,
  endDelivery,
  hold,
  isActive,
  isClaimed,
  isTest,
  openDelivery,
  pendingOf,
  type Reference,
} from './reference.ts';

const MOST_TESTS = 10;

/** Returns the reason why a slot cannot receive events now, or undefined if it can. */
export function permissionOf(of: Reference, slot: string): 'CLOSED' | 'GONE' | 'PAUSED' | undefined {
  if (!of.isReady || !of.hasMarker) return 'CLOSED';
  const route = of.subs.get(slot)?.route ?? 'closed';
  return route === 'closed' ? 'GONE' : route === 'paused' ? 'PAUSED' : undefined;
}

/** Ends an open delivery as requested by its owner. An attempt in progress holds its lane until it ends. */
function finishOne(of: Reference, delivery: Delivery, outcome: 'skipped' | 'delivered'): void {
  const claim = of.claims.get(delivery.lane);
  if (claim?.delivery === delivery) claim.ended = true;
  endDelivery(of, delivery, outcome, outcome === 'skipped' ? 'skipped' : 'acknowledged');
}

/** Ends all open deliveries in the list and returns the same response as REST. */
export function finish(
  of: Reference,
  deliveries: readonly Delivery[],
  outcome: 'skipped' | 'delivered',
): string[] | 'PUSHED' {
  const slot = deliveries[0]?.slot;
  if (outcome === 'delivered' && slot !== undefined && of.endpoints.has(slot)) return 'PUSHED';
  return deliveries.map(delivery => {
    if (delivery.forgotten) return 'UNKNOWN';
    if (delivery.record !== undefined) return delivery.record.outcome;
    hold(of.events.has(delivery.ref) || isTest(delivery), () => `${delivery.entry} is open, but its event was removed`);
    finishOne(of, delivery, outcome);
    return 'OK';
  });
}

export function skipUpTo(of: Reference, slot: string, upTo: string, groupKey: string | undefined): number {
  const open = [...of.open.values()].filter(
    each =>
      each.slot === slot &&
      each.replay === undefined &&
      each.ref <= upTo &&
      (groupKey === undefined || each.groupKey === groupKey),
  );
  for (const each of open) finishOne(of, each, 'skipped');
  return open.length;
}

/**
 * Returns the events that can be pulled: the first event of each lane, or all events. Ignores lanes that are waiting
 * for a retry.
 */
export function pullable(of: Reference, slot: string, all: boolean, before: Dump): Delivery[] {
  const lanes = new Set([...of.open.values()].filter(each => each.slot === slot).map(({ lane }) => lane));
  return [...lanes].flatMap(lane => {
    const pending = pendingOf(of, lane);
    const head = pending[0];
    if (head === undefined || of.claims.has(lane) || before.lanes.get(lane) === 'r' || !isActive(of, head)) return [];
    const found = all ? pending : [head];
    return found.filter(({ ref }) => of.events.has(ref));
  });
}

/**
 * Makes failed events due immediately. Returns their number, and the number of dead letters that can only be delivered
 * by a replay, which are dead letters that have already been recovered, and replays. Ignores data that is being
 * removed.
 */
export function recover(of: Reference, slot: string, before: Dump): { recovered: number; replayRequired: number } {
  const cut = cutOf(before);
  let [recovered, replayRequired] = [0, 0];
  for (const each of of.deliveries.values()) {
    if (each.slot !== slot || !of.events.has(each.ref)) continue;
    if (each.record?.outcome === 'dead' && (each.recovered || each.replay !== undefined)) {
      replayRequired++;
      continue;
    }
    if (each.ref <= cut) continue;
    if (each.record?.outcome === 'dead') {
      const wasSent = each.record.reason !== 'retention';
      each.earlier = each.record.attempts;
      each.record = undefined;
      each.recovered = true;
      Object.assign(each, { tried: true, attempts: 0, lapses: 0, dueMs: 0 });
      if (wasSent) addFailed(each);
      of.open.set(each.entry, each);
      countsOf(of, slot).dead--;
      recovered++;
    } else if (each.record === undefined && !isClaimed(of, each) && each.attempts > 0 && each.dueMs > of.nowMs) {
      each.dueMs = of.nowMs;
      recovered++;
    }
  }
  return { recovered, replayRequired };
}

/**
 * Adds events to lanes of a replay. Returns a letter for each event. Data that is being removed is treated as removed.
 */
export function replay(
  of: Reference,
  slot: string,
  id: string,
  refs: readonly string[],
  before: Dump,
): string | undefined {
  const permission = permissionOf(of, slot);
  if (permission === 'CLOSED') return undefined;
  return refs
    .map(ref => {
      const event = of.events.get(ref);
      if (permission === 'GONE' || event === undefined || ref <= cutOf(before)) return 'g';
      const { groupKey } = event;
      if (of.open.has(`${slot}${groupKey}\0${ref}`)) return 'o';
      openDelivery(of, { slot, ref, groupKey, replay: id });
      countsOf(of, slot).replayed++;
      return 't';
    })
    .join('');
}

/** Sends a test event. Returns its ref, or a word if the test event is refused. */
export function sendTest(of: Reference, slot: string, number: number): string {
  const word = permissionOf(of, slot);
  if (word !== undefined) return word;
  if (!of.endpoints.has(slot)) return 'PULLED';
  if (of.subs.get(slot)?.send !== 'open' || isDisabled(of, slot)) return 'HELD';
  const isTestOf = (each: Delivery) => each.slot === slot && isTest(each);
  const waiting = [...of.open.values()].filter(each => isTestOf(each) && !isClaimed(of, each));
  const claimed = [...of.claims.values()].filter(({ delivery }) => isTestOf(delivery));
  if (waiting.length + claimed.length >= MOST_TESTS) return 'MANY';
  const ref = of.nowMs.toString(16).padStart(11, '0') + (0xffe0 + number).toString(16);
  openDelivery(of, { slot, ref, groupKey: '', replay: undefined });
  return ref;
}

/** Returns a delivery's state, as seen by its owner. */
export function stateOf(of: Reference, delivery: Delivery): string {
  if (delivery.record !== undefined) return delivery.record.outcome;
  if (isClaimed(of, delivery)) return 'inflight';
  return delivery.attempts > 0 ? 'retrying' : 'pending';
}
