import { streamIdOfRef } from '../../../src/core/ids/refs.ts';
import { type Claim, type Completion, replayOf } from '../../../src/redis/inbox-store.ts';
import type { Flight } from '../processes/dispatcher.ts';
import { deliveryName, type Receiver } from '../state/expectation.ts';
import type { ModelTenant } from '../state/tenant.ts';
import { hold } from '../state/violation.ts';

/** Whose inbox `int_…/sub_….inc` is. */
export function ownerOf(tenants: readonly ModelTenant[], member: string): { tenant: ModelTenant; receiver: Receiver } {
  for (const tenant of tenants) {
    for (const receiver of tenant.receivers.values()) {
      const { integration, sub, inc } = tenant.inboxOf(receiver);
      if (`${integration}/${sub}.${inc}` === member) return { tenant, receiver };
    }
  }
  throw new Error(`nobody is ${member}`);
}

/** Which delivery was claimed. */
export const nameOfClaim = ({ lane, ref }: Pick<Claim, 'lane' | 'ref'>) => deliveryName(ref, replayOf(lane));

/** A claim: allowed now (invariants 2, 5), the first of its lane (15), not early (18), held by nobody else. */
export function checkClaim(
  tenants: readonly ModelTenant[],
  others: readonly Flight[],
  member: string,
  claim: Claim,
  nowMs: number,
): void {
  const { lane, ref, attempts } = claim;
  const { tenant, receiver } = ownerOf(tenants, member);
  const who = `${tenant.name}'s ${receiver.name}`;
  const delivery = receiver.open.get(nameOfClaim(claim));
  hold(17, delivery !== undefined, () => `${streamIdOfRef(ref)} was claimed for ${who}, and is not open there`);
  const { event, replayId } = delivery;
  const open = tenant.mayBe(({ subscriptions }) => subscriptions.get(receiver.uid)?.sends === true);
  hold(2, open, () => `${event.name} was claimed for ${who}, which is not sent to`);
  const active = tenant.mayBe(({ gates }) => gates.has(`${receiver.integration}/${event.groupKey}`));
  hold(5, active, () => `${event.name} was claimed for ${who}, whose key ${event.groupKey} is not active`);
  if (!receiver.unordered) {
    // Each replay has an order of its own: it holds up no other events of its keys, nor do they it.
    for (const { event: before, replayId: of } of receiver.open.values()) {
      const first = before.ref >= ref || before.groupKey !== event.groupKey || of !== replayId;
      hold(15, first, () => `${event.name} was claimed for ${who} before ${before.name}`);
    }
  }
  hold(18, nowMs >= delivery.dueMs, () => `${event.name} was claimed for ${who} ${delivery.dueMs - nowMs} ms early`);
  hold(13, attempts === delivery.attempts, () => `${event.name} has ${attempts} attempts, not ${delivery.attempts}`);
  // One that ended meanwhile, skipped or by retention, holds nothing any more.
  const onItsWay = others.filter(each => each.member === member && receiver.open.has(nameOfClaim(each.claim)));
  const held = onItsWay.some(each => each.claim.lane === lane && each.untilMs > nowMs);
  hold(16, !held, () => `${event.name} was claimed for ${who} while it is on its way`);
}

/** The partner gets the published bytes (invariant 14). */
export function checkEvent(tenants: readonly ModelTenant[], flight: Flight): void {
  const { receiver } = ownerOf(tenants, flight.member);
  const event = receiver.open.get(nameOfClaim(flight.claim))?.event;
  if (flight.event === undefined || event === undefined) return;
  const same = (['eventId', 'groupKey', 'body'] as const).every(part => flight.event?.[part] === event[part]);
  hold(
    14,
    same,
    () => `${event.name} was published as ${JSON.stringify(event)}, and is ${JSON.stringify(flight.event)}`,
  );
}

/** Notes an attempt that ended with the given answer of Redis. */
export function noteEnd(
  tenants: readonly ModelTenant[],
  flight: Flight,
  outcome: Completion['outcome'],
  answer: 'OK' | 'GONE' | 'STALE',
  dueMs: number,
  nowMs: number,
): void {
  const { receiver } = ownerOf(tenants, flight.member);
  const name = nameOfClaim(flight.claim);
  const delivery = receiver.open.get(name);
  if (delivery === undefined) return hold(17, answer === 'GONE', () => `an event that had ended was ended: ${answer}`);
  // An inbox that was deleted knows nothing any more.
  const counts = !receiver.leaving && (outcome === 'delivered' || flight.untilMs > nowMs);
  if (counts) hold(13, answer === 'OK', () => `${delivery.event.name} was ${outcome}, and Redis says ${answer}`);
  if (answer !== 'OK') return;
  if (outcome === 'failed' || outcome === 'gone') {
    delivery.attempts++;
    if (outcome === 'gone') receiver.disabled = true;
    delivery.dueMs = outcome === 'gone' ? 0 : dueMs;
  } else if (outcome !== 'released') {
    receiver.open.delete(name);
    receiver.final.set(name, outcome);
  }
}

/** Notes what its owner did to one delivery of an inbox, by its name: skipped, or acknowledged, once; later calls learn how it ended. */
export function noteFinish(receiver: Receiver, name: string, outcome: 'skipped' | 'delivered', answer: string): void {
  const ended = receiver.final.get(name);
  if (ended !== undefined) {
    // Of one that retention ended, the record may be gone.
    hold(17, answer === ended || answer === 'UNKNOWN', () => `an event that was ${ended} is ${answer}`);
    return;
  }
  hold(17, answer === 'OK', () => `${receiver.open.get(name)?.event.name} could not be ${outcome}: ${answer}`);
  receiver.open.delete(name);
  receiver.final.set(name, outcome);
}
