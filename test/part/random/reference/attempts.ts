import { ATTEMPT_LETTERS } from '../../../../src/part/claims/delivery-note.ts';
import type { Completion, CompletionAnswer, ExchangeAnswer, Holding } from '../../../../src/part/claims/exchange.ts';
import { isAlone } from '../../../../src/part/claims/message.ts';
import { type Dump, endingOf } from '../dump.ts';
import { LIMITS } from '../limits.ts';
import { healthOf, noteOutcomes, noteProbe, type Outcomes } from './health.ts';
import {
  addFailed,
  type Delivery,
  endDelivery,
  flightOf,
  hold,
  isFirst,
  isTest,
  limitOf,
  noteDeath,
  obstacleOf,
  pendingOf,
  type Reference,
  same,
  takeClaim,
} from './reference.ts';

const MOST_DISPATCHERS = 4;

function giveBack(delivery: Delivery, { outcome, dueMs = 0 }: Completion): void {
  if (outcome === 'released') return;
  delivery.tried = true;
  delivery.attempts++;
  delivery.lapses = 0;
  delivery.dueMs = outcome === 'gone' ? 0 : dueMs;
  addFailed(delivery);
}

/** The response to a call that ends an attempt, and whether this is the last attempt of the slot. */
interface Completed {
  readonly answer: CompletionAnswer;
  readonly isLast: boolean;
}

const DONE: Completed = { answer: 'done', isLast: true };

function complete(of: Reference, completion: Completion, by: string, of_: Outcomes): Completed {
  const { lane, ref, outcome, reason, latencyMs } = completion;
  const claim = of.claims.get(lane);
  const isHeld = claim?.delivery.ref === ref && claim.by === by;
  // Another dispatcher is sending the event again. Its attempt holds the lane until it ends.
  const isResent = claim?.delivery.ref === ref && !isHeld && !claim.ended && outcome === 'delivered';
  if (isResent) claim.ended = true;
  if (isHeld && claim.ended) {
    of.claims.delete(lane);
    of_.entries.add(claim.delivery.entry);
    const { record, forgotten } = claim.delivery;
    // If the record has been removed along with the event, there is nothing to which the attempt could be added.
    if (record !== undefined && !forgotten && latencyMs !== undefined) {
      claim.delivery.record = { ...record, attempts: record.attempts + 1 };
      addFailed(claim.delivery);
      if (outcome !== 'delivered' && isFirst(claim.delivery)) of.traffic.failed++;
    }
    return { answer: 'ended', isLast: true };
  }
  const waiting = outcome === 'delivered' ? pendingOf(of, lane).find(each => each.ref === ref) : undefined;
  const delivery = isHeld || isResent ? claim.delivery : waiting;
  if (delivery === undefined) return { answer: outcome === 'delivered' ? 'ended' : 'stale', isLast: false };
  if (isHeld) of.claims.delete(lane);
  const wasSent = latencyMs !== undefined;
  if (outcome === 'delivered') of_.delivered = true;
  else of_.entries.add(delivery.entry);
  const failed = outcome === 'failed' || outcome === 'gone' || (outcome === 'dead' && wasSent);
  if (failed) of_.failed++;
  if (failed && isFirst(delivery)) of.traffic.failed++;
  if (outcome === 'gone') of_.gone = true;
  if (outcome === 'delivered' || outcome === 'dead' || outcome === 'expired') {
    endDelivery(of, delivery, outcome, reason, delivery.attempts + (wasSent ? 1 : 0));
    if (outcome === 'dead' && !isTest(delivery)) noteDeath(of, delivery);
  } else giveBack(delivery, completion);
  return DONE;
}

/** Ends attempts and returns the responses and the disabled slots. */
function completeAll(of: Reference, completions: readonly Completion[], by: string) {
  const outcomes = new Map<string, Outcomes>();
  const completed = completions.map(completion => {
    const slot = completion.lane.slice(0, 8);
    const none = { failed: 0, delivered: false, gone: false, entries: new Set<string>() };
    const of_ = outcomes.get(slot) ?? none;
    outcomes.set(slot, of_);
    return complete(of, completion, by, of_);
  });
  const disabled = [...outcomes].filter(([slot, of_]) => noteOutcomes(of, slot, of_)).map(([slot]) => slot);
  return { completed, disabled };
}

/** If the part has reached its limit, the oldest failed attempts of a delivery are removed. */
function noteRemoved(of: Reference, completions: readonly Completion[], after: Dump): void {
  for (const { lane, ref } of completions) {
    const delivery = [...of.open.values()].find(each => each.lane === lane && each.ref === ref);
    if (delivery === undefined || delivery.failed === 0) continue;
    const kept = (after.tries.get(delivery.entry) ?? '').split(',').length - 1;
    const isRemoved = kept > 0 && kept < delivery.failed && of.maxBytes < LIMITS.noLimit;
    hold(kept === delivery.failed || isRemoved, () => `${kept} failed attempts of ${delivery.entry} are kept`);
    delivery.failed = kept;
  }
}

/** Records how attempts ended, for slots that are changed by the call. */
function noteEndings(
  of: Reference,
  completions: readonly Completion[],
  completed: readonly Completed[],
  after: Dump,
): void {
  const letters = new Map<string, string>();
  const noted = new Set<string>();
  for (const [at, { lane, ref, outcome, attempted }] of completions.entries()) {
    const slot = lane.slice(0, 8);
    const { answer, isLast } = completed[at] as Completed;
    if (!isLast) continue;
    // A test event that is no longer held by its dispatcher does not change any counters.
    if (answer === 'done' && !isTest({ ref })) noted.add(slot);
    if (outcome === 'delivered') letters.set(slot, 's');
    else if (attempted !== undefined) letters.set(slot, ATTEMPT_LETTERS[attempted]);
  }
  for (const [slot, letter] of letters) {
    if (!of.subs.has(slot)) continue;
    const before = of.endings.get(slot);
    const ending = before?.[0] === letter ? before : letter + of.nowMs.toString(16).padStart(11, '0');
    // For all other slots, this depends on the other changes of the call.
    const is = endingOf(after, slot) === before ? before : ending;
    const next = noted.has(slot) ? ending : is;
    if (next !== undefined) of.endings.set(slot, next);
  }
}

/**
 * Returns whether a claimable lane may have to wait for others because the number of failed or expired events in
 * progress is limited.
 */
function mayHaveToWait(of: Reference, delivery: Delivery, after: Dump): boolean {
  const { slot, lane } = delivery;
  const health = of.health.get(slot);
  if (health !== undefined && (health.pause > 0 || health.disabled !== '-')) return true;
  if (of.subs.get(slot)?.maxPerSecond !== undefined) return true;
  if (flightOf(of, slot) >= limitOf(of, slot)) return true;
  const waitsAs = after.lanes.get(lane)?.[1];
  if (waitsAs === '2') return true;
  return waitsAs === '1' && flightOf(of, slot) >= limitOf(of, slot) - Math.floor(limitOf(of, slot) / 4);
}

type Answer = Exclude<ExchangeAnswer, { answer: 'GONE' }>;

function checkClaims(of: Reference, answer: Answer, holding: Holding): number {
  let [taken, alone] = [0, holding.holdsAlone];
  const probes = new Set<string>();
  for (const claimed of answer.events) {
    for (const claim of claimed.claims) {
      const delivery = takeClaim(of, claim, holding.dispatcher);
      taken++;
      if (isAlone(claim)) {
        hold(!alone, () => `${claim.lane} is claimed beside another one that lapsed`);
        alone = true;
      }
      const health = healthOf(of, claim.slot);
      hold((health?.disabled ?? '-') === '-', () => `${claim.slot} is claimed, and its endpoint is disabled`);
      if (health === undefined || health.pause === 0) continue;
      hold(!probes.has(claim.slot), () => `${claim.slot} has a second probe`);
      hold(health.next <= of.nowMs, () => `${claim.slot} is probed ${health.next - of.nowMs} ms early`);
      probes.add(claim.slot);
      noteProbe(of, claim.slot, delivery.entry);
    }
  }
  return taken;
}

/** Checks the response of an exchange, and that it claimed all available events. */
export function exchange(
  of: Reference,
  answer: Answer,
  holding: Holding,
  completions: readonly Completion[],
  most: number,
  after: Dump,
): void {
  const by = holding.dispatcher;
  const own = of.ready.get(by);
  const others = [...of.ready].filter(([name]) => name !== by);
  const isFull = own === undefined && others.filter(([, { untilMs }]) => untilMs > of.nowMs).length >= MOST_DISPATCHERS;
  const word = !of.isReady ? 'CLOSED' : isFull ? 'HELD' : 'OK';
  same('answer', answer.answer, word);
  same(
    'lapsed',
    [...answer.lapsed].sort(),
    others
      .filter(([, { untilMs }]) => untilMs <= of.nowMs)
      .map(([name]) => name)
      .sort(),
  );
  same('hold', answer.hold, of.hold);
  const { completed, disabled } = completeAll(of, completions, by);
  same(
    'answers',
    answer.answers,
    completed.map(each => each.answer),
  );
  noteEndings(of, completions, completed, after);
  noteRemoved(of, completions, after);
  same('disabled', [...answer.disabled].sort(), disabled.sort());
  const [pushed, bytes] = [own?.pushed ?? holding.pushed, own?.bytes ?? holding.bytes];
  same('pushed', [answer.pushed, answer.bytes], [pushed, bytes]);
  const held = Math.max(0, holding.held - completions.length + pushed - holding.pushed);
  const budget = word === 'OK' ? Math.max(0, Math.min(holding.limit - held, most)) : 0;
  const taken = checkClaims(of, answer, holding);
  hold(taken <= budget, () => `${taken} claims are answered, ${budget} were asked for`);
  if (word === 'OK') {
    const room = Math.max(0, holding.roomBytes - (bytes - holding.bytes));
    const untilMs = of.nowMs + holding.readyMs;
    const { limit, number } = holding;
    of.ready.set(by, { untilMs, limit, held: held + taken, pushed, room, bytes, number });
  }
  if (taken === budget || answer.more) return;
  for (const delivery of of.open.values()) {
    const isLeft = obstacleOf(of, delivery) === undefined && !mayHaveToWait(of, delivery, after);
    hold(!isLeft, () => `${JSON.stringify(delivery.entry)} could be claimed, and was not`);
  }
}

export function evict(of: Reference, by: string): { answer: 'HELD' } | { answer: 'OK'; claims: number } {
  const ready = of.ready.get(by);
  if (ready !== undefined && ready.untilMs > of.nowMs) return { answer: 'HELD' };
  of.ready.delete(by);
  let claims = 0;
  for (const [lane, claim] of of.claims) {
    if (claim.by !== by) continue;
    claims++;
    of.claims.delete(lane);
    if (claim.ended) continue;
    claim.delivery.tried = true;
    claim.delivery.lapses++;
  }
  return { answer: 'OK', claims };
}
