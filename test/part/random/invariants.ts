import type { Dump } from './dump.ts';
import {
  flightOf,
  hold,
  isActive,
  isTest,
  limitOf,
  obstacleOf,
  pendingOf,
  type Reference,
  same,
} from './reference/reference.ts';

/** Returns the lanes that have open deliveries. */
function pendingLanes(of: Reference): Set<string> {
  const lanes = new Set<string>();
  for (const each of of.open.values()) lanes.add(each.lane);
  return lanes;
}

/**
 * The number of characters for `w`, the class, and the due time. They are followed by the ref of the first event, and
 * by `+` if more events are waiting.
 */
const WAITING_CHARACTERS = 13;

function memberOf(lane: string, state: string): string {
  return lane.slice(0, 8) + state.slice(1, WAITING_CHARACTERS) + lane.slice(8);
}

function checkLane(of: Reference, dump: Dump, lane: string): void {
  const [claim, state, pending] = [dump.claims.get(lane), dump.lanes.get(lane), pendingOf(of, lane)];
  const name = JSON.stringify(lane);
  const head = pending[0];
  if (claim !== undefined) {
    hold(state === undefined, () => `${name} is claimed, but its state is ${state}`);
    if (claim.startsWith('c'))
      hold(head === undefined, () => `the claim of ${name} is marked as the last one, but events are waiting`);
    return;
  }
  // A sweep removes the data of a deleted subscription in slices, starting with its lanes.
  if (state === undefined && !of.subs.has(lane.slice(0, 8))) return;
  hold(
    (state !== undefined) === (head !== undefined),
    () => `${name} is ${state ?? 'idle'}, but ${pending.length} events are waiting`,
  );
  if (state === undefined || head === undefined) return;
  if (state.startsWith('w'))
    hold(dump.waiting.has(memberOf(lane, state)), () => `${name} is waiting, but missing from P:wait`);
  const first = state.startsWith('w') ? state.slice(WAITING_CHARACTERS) : '';
  if (first !== '') same(`the first event of ${name}`, first, head.ref + (pending.length > 1 ? '+' : ''));
  if (state === 'r') same(`when ${name} is due`, dump.retries.get(lane), head.dueMs);
  else if (state !== 'p')
    hold(head.dueMs <= of.nowMs, () => `${name} is waiting, but due in ${head.dueMs - of.nowMs} ms`);
  const mark = dump.off.get(lane.slice(0, 8) + head.groupKey);
  if (isTest(head) || !of.subs.has(head.slot)) return;
  if (isActive(of, head))
    hold(state !== 'p' || mark?.startsWith('2') === true, () => `${name} is parked, but its group key is active`);
  else hold(mark === '1', () => `${name} is not active, but P:off contains ${mark}`);
}

function checkSlot(of: Reference, dump: Dump, slot: string): void {
  const waiting = (dump.counts.get(slot) ?? '0 0 0').split(' ')[2];
  const lanes = [...dump.lanes].filter(([lane, state]) => lane.startsWith(slot) && state.startsWith('w'));
  const health = of.health.get(slot);
  const text = () => `${slot} has ${lanes.length} waiting lanes, but its counters contain ${waiting}`;
  if (waiting === '0' || waiting === '3') hold(lanes.length === 0, text);
  if (waiting === '1' && lanes.length > 0) {
    const free = limitOf(of, slot) - flightOf(of, slot);
    const areRetries = lanes.every(([, state]) => state[1] === '1');
    const isFound = dump.turns.has(slot) || free <= (areRetries ? Math.floor(limitOf(of, slot) / 4) : 0);
    hold(isFound, () => `${text()}; it has no turn, and ${flightOf(of, slot)} of ${limitOf(of, slot)} claims`);
  }
  if (waiting === '2' && lanes.length > 0) {
    const isStopped = of.subs.get(slot)?.send !== 'open' || (health !== undefined && health.disabled !== '-');
    hold(isStopped || dump.retries.has(`${slot}\x02`), () => `${text()}; no retry starts it again`);
  }
}

/**
 * Returns the slots with events that could be claimed immediately, although no attempt is in progress whose end would
 * cause this.
 */
export function claimableSlots(of: Reference, dump: Dump): Set<string> {
  const slots = new Set<string>();
  for (const delivery of of.open.values()) {
    const { slot, lane } = delivery;
    // Dispatchers know the due time of retries in advance.
    if (dump.lanes.get(lane) === 'r') continue;
    if (slots.has(slot) || flightOf(of, slot) > 0 || obstacleOf(of, delivery) !== undefined) continue;
    const health = of.health.get(slot);
    const isPaced = of.subs.get(slot)?.maxPerSecond !== undefined;
    if (!isPaced && (health === undefined || (health.pause === 0 && health.disabled === '-'))) slots.add(slot);
  }
  return slots;
}

/**
 * Checks the slots that a part remembers to be behind. They are not searched for again, so the first ones have to be
 * those that are closest to the tail. If it ends with `-`, there must not be any others.
 */
function checkCohort(of: Reference, dump: Dump): void {
  const kept = dump.meta.get('cohort');
  if (kept === undefined) return;
  const slots: readonly string[] = kept.match(/[^-]{8}/g) ?? [];
  const isBehind = (slot: string) => of.subs.get(slot)?.route === 'open' && of.positions.has(slot);
  const known = slots.filter(isBehind);
  const others = [...of.positions.keys()].filter(slot => isBehind(slot) && !slots.includes(slot));
  const refs = [...known, ...others].map(slot => of.positions.get(slot) as string);
  const text = () => `${kept} is not in the order of ${JSON.stringify([...of.positions])}`;
  if (known.length > 0) {
    const last = known.length - 1;
    hold(
      refs.every((ref, i) => i === 0 || (refs[Math.min(i - 1, last)] as string) >= ref),
      text,
    );
  }
  hold(!kept.endsWith('-') || others.length === 0, () => `${kept} does not contain ${others.join(', ')}`);
}

/** Checks the invariants of each part. */
export function checkInvariants(of: Reference, dump: Dump): void {
  checkCohort(of, dump);
  const lanes = pendingLanes(of);
  for (const lane of new Set([...lanes, ...dump.claims.keys(), ...dump.lanes.keys()])) checkLane(of, dump, lane);
  for (const member of dump.waiting.keys()) {
    const lane = member.slice(0, 8) + member.slice(20);
    same(
      `state of ${JSON.stringify(lane)}, which is in P:wait`,
      dump.lanes.get(lane)?.slice(0, WAITING_CHARACTERS),
      `w${member.slice(8, 20)}`,
    );
  }
  for (const lane of dump.retries.keys()) {
    if (lane[8] === '\x02') continue;
    same(`state of ${JSON.stringify(lane)}, which is in P:retry`, dump.lanes.get(lane), 'r');
  }
  for (const slot of of.subs.keys()) checkSlot(of, dump, slot);
}
