import { metaOfEvent } from '../../../src/part/inbox/details.ts';
import { msOfRef } from '../../../src/part/lanes/ref.ts';
import type { Flight, Report } from '../processes/dispatcher.ts';
import { deliveryName, RETENTION_MS, type Receiver } from '../state/expectation.ts';
import { noteFailure } from '../state/slot-comparison.ts';
import type { ModelTenant } from '../state/tenant.ts';
import { hold } from '../state/violation.ts';
import { claimsOf, type HeldClaim, nameOf, type PartDump, type WorldDump } from '../state/world-dump.ts';

export interface Owner {
  readonly tenant: ModelTenant;
  readonly receiver: Receiver;
}

/** Returns the receiver of a slot. */
export function ownerOf(tenants: readonly ModelTenant[], slot: string): Owner {
  for (const tenant of tenants) {
    for (const receiver of tenant.receivers.values()) if (receiver.slot === slot) return { tenant, receiver };
  }
  throw new Error(`there is no receiver for ${slot}`);
}

/** Checks a claim: it is allowed now (invariants 2, 5), the first of its lane (15), and not early (18). */
function checkClaim({ tenant, receiver }: Owner, { lane, ref }: HeldClaim, nowMs: number): void {
  const who = `${tenant.name}'s ${receiver.name}`;
  const delivery = receiver.open.get(nameOf(lane, ref));
  hold(17, delivery !== undefined, () => `${tenant.nameOf(ref)} was claimed for ${who}, and is not open there`);
  const { event, replayId } = delivery;
  const open = tenant.mayBe(({ subscriptions }) => subscriptions.get(receiver.uid)?.sends === true);
  hold(2, open, () => `${event.name} was claimed for ${who}, which is not sent to`);
  const active = tenant.mayBe(({ gates }) => gates.has(`${receiver.integration}/${event.groupKey}`));
  hold(5, active, () => `${event.name} was claimed for ${who}, whose key ${event.groupKey} is not active`);
  if (!receiver.unordered) {
    // Each replay has a separate order: it does not block other events with the same key and is not blocked by them.
    for (const { event: before, replayId: of } of receiver.open.values()) {
      const first = before.ref >= ref || before.groupKey !== event.groupKey || of !== replayId;
      hold(15, first, () => `${event.name} was claimed for ${who} before ${before.name}`);
    }
  }
  hold(18, nowMs >= delivery.dueMs, () => `${event.name} was claimed for ${who} ${delivery.dueMs - nowMs} ms early`);
}

const untilOf = ({ ready }: PartDump, dispatcher: string) => Number((ready.get(dispatcher) ?? '0').split(' ')[0]);

/**
 * Checks that a claim was only removed because its attempt ended, its dispatcher was inactive for too long, or the
 * event expired (invariant 16).
 */
function mayGo(before: PartDump, { lane, ref, dispatcher }: HeldClaim, reports: readonly Report[], nowMs: number) {
  const reported = reports.some(
    report =>
      report.dispatcher === dispatcher && report.completions.some(each => each.lane === lane && each.ref === ref),
  );
  return reported || untilOf(before, dispatcher) <= nowMs || nowMs - msOfRef(ref) > RETENTION_MS;
}

/** The claims that were made and removed in a step. */
export function checkClaims(
  tenants: readonly ModelTenant[],
  before: WorldDump,
  after: WorldDump,
  reports: readonly Report[],
  nowMs: number,
): void {
  for (const [key, part] of after.parts) {
    const earlier = before.parts.get(key);
    const had = new Map<string, HeldClaim>();
    if (earlier?.part.gen === part.part.gen) for (const claim of claimsOf(earlier)) had.set(claim.lane, claim);
    for (const claim of claimsOf(part)) {
      const was = had.get(claim.lane);
      had.delete(claim.lane);
      if (was?.ref === claim.ref && was.dispatcher === claim.dispatcher) continue;
      if (was !== undefined) had.set(claim.lane, was);
      checkClaim(ownerOf(tenants, claim.slot), claim, nowMs);
    }
    // If a stream's slot was lost, the stream starts again.
    if ((part.meta.get('tail') ?? '') < (earlier?.meta.get('tail') ?? '')) continue;
    for (const claim of had.values()) {
      const right = mayGo(earlier as PartDump, claim, reports, nowMs);
      hold(
        16,
        right,
        () => `${claim.dispatcher} lost its claim of ${tenants.map(each => each.nameOf(claim.ref)).join()}`,
      );
    }
  }
}

/** Checks that the partner receives the published bytes (invariant 14). */
export function checkFlight(tenants: readonly ModelTenant[], { part, claim, event, body }: Flight): void {
  const { receiver } = ownerOf(tenants, claim.slot);
  const sent = receiver.open.get(deliveryName(claim.ref, claim.replay))?.event;
  if (sent === undefined || body === undefined) return;
  const { id } = metaOfEvent(part, event.ref, event.groupKey, event.meta);
  const same = id === sent.eventId && event.groupKey === sent.groupKey && body.toString() === sent.body;
  hold(14, same, () => `${sent.name} was published as ${JSON.stringify(sent)}, and is ${id} ${event.groupKey} ${body}`);
  hold(14, msOfRef(event.ref) === sent.acceptedMs, () => `${sent.name} has the wrong acceptance time`);
}

/** Applies the response of an exchange to ended attempts. Each `delivered` is counted. */
export function noteReport(tenants: readonly ModelTenant[], before: WorldDump, report: Report, nowMs: number): void {
  const { part, dispatcher, completions, answers = [] } = report;
  const claims = before.parts.get(`${part.tenant}:${part.queue}`);
  const held = new Map((claims === undefined ? [] : claimsOf(claims)).map(each => [each.lane, each]));
  // It may have been evicted in this step by another dispatcher.
  const isSilent = claims === undefined || untilOf(claims, dispatcher) <= nowMs;
  for (const [i, answer] of answers.entries()) {
    const completion = completions[i] as (typeof completions)[number];
    const { lane, ref, outcome } = completion;
    const { tenant, receiver } = ownerOf(tenants, lane.slice(0, 8));
    // The remaining data of a removed stream has no owner.
    if (tenant.uidOf(part.queue, part.gen) === '') continue;
    const name = nameOf(lane, ref);
    const delivery = receiver.open.get(name);
    const isFree = receiver.leaving || receiver.ended;
    const title = () => `${delivery?.event.name ?? 'an ended event'} was ${outcome}, and Redis says ${answer}`;
    if (delivery === undefined) {
      hold(17, answer !== 'done' || isFree, title);
      continue;
    }
    const claim = held.get(lane);
    const isHolder = claim?.ref === ref && claim.dispatcher === dispatcher && !isSilent;
    hold(13, answer === 'done' || isFree || (outcome !== 'delivered' && !isHolder), title);
    if (answer !== 'done') continue;
    if (outcome === 'failed' || outcome === 'gone') noteFailure(receiver, name, completion);
    else if (outcome !== 'released') {
      receiver.open.delete(name);
      receiver.final.set(name, outcome);
    }
  }
}

/**
 * Records an owner's operation on a delivery of an inbox by name: skipped or acknowledged, once. Later calls return how
 * it ended.
 */
export function noteFinish(receiver: Receiver, name: string, outcome: 'skipped' | 'delivered', answer: string): void {
  const ended = receiver.final.get(name);
  if (answer === 'UNKNOWN' && receiver.forgotten.has(name)) return;
  if (ended !== undefined) return hold(17, answer === ended, () => `an event that was ${ended} is ${answer}`);
  hold(17, answer === 'OK', () => `${receiver.open.get(name)?.event.name} could not be ${outcome}: ${answer}`);
  receiver.open.delete(name);
  receiver.final.set(name, outcome);
}
