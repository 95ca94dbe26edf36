import type { Completion } from '../../../src/part/claims/exchange.ts';
import { msOfRef, NO_REF } from '../../../src/part/lanes/ref.ts';
import { FINALS, type Final, type ModelEvent, RETENTION_MS, type Receiver } from './expectation.ts';
import { hold } from './violation.ts';
import { openOf, type PartDump } from './world-dump.ts';

/** The data of a part that is compared. */
export interface ReadPart {
  readonly dump: PartDump;
  readonly stored: ReadonlySet<string>;
  /** The refs that were routed to a slot, by slot. */
  readonly routed: ReadonlyMap<string, ReadonlySet<string>>;
  /** The names of open deliveries, by slot. */
  readonly open: ReadonlyMap<string, ReadonlySet<string>>;
}

/** The information required for a comparison, in addition to the receiver. */
export interface Comparison {
  /** The name of the receiver in the story. */
  readonly who: string;
  readonly nameOf: (ref: string) => string;
  /** Returns the event if a paid replay may deliver it now. */
  readonly replayedEvent: (ref: string, replayId: string) => ModelEvent | undefined;
  /** The results of attempts that were reported in this step and whose response was lost, by delivery name. */
  readonly unanswered: ReadonlyMap<string, Completion>;
  readonly onRouted: (event: ModelEvent) => void;
  readonly nowMs: number;
}

const NONE: ReadonlySet<string> = new Set();

export function readPart(dump: PartDump): ReadPart {
  const routed = new Map<string, Set<string>>();
  const add = (ref: string, slots: readonly string[]) => {
    for (const slot of slots) routed.set(slot, (routed.get(slot) ?? new Set()).add(ref));
  };
  for (const { ref, slots } of dump.log) add(ref, slots);
  for (const [ref, slots] of dump.late) add(ref, slots);
  return { dump, stored: new Set(dump.log.map(({ ref }) => ref)), routed, open: openOf(dump) };
}

/**
 * Returns the ref up to which all events have been evaluated for a subscription, or undefined if the part does not
 * contain it.
 */
export function passedOf({ subs, positions, meta }: PartDump, slot: string): string | undefined {
  if (!subs.has(slot)) return undefined;
  return positions.get(slot) ?? (meta.has('hold') ? meta.get('pos') : meta.get('tail')) ?? NO_REF;
}

/**
 * Checks that delivered events belong to the receiver and were allowed (invariant 1), and that all others were refused
 * (invariant 8). No event is evaluated in advance.
 */
function noteDecided(receiver: Receiver, part: ReadPart, { who, nameOf, nowMs, onRouted }: Comparison): void {
  const { slot, undecided, routed, open } = receiver;
  const got = part.routed.get(slot) ?? NONE;
  const passed = passedOf(part.dump, slot);
  for (const [ref, { event, may }] of undecided) {
    if (got.has(ref)) {
      hold(1, may.has('route'), () => `${event.name} was routed to ${who}, which may not get it`);
      hold(1, passed === undefined || ref <= passed, () => `${event.name} was routed to ${who}, which is before it`);
      undecided.delete(ref);
      routed.set(ref, event);
      open.set(ref, { event, replayId: undefined, attempts: 0, dueMs: 0 });
      onRouted(event);
    } else if (passed !== undefined && ref <= passed) {
      const right = may.has('refuse') || nowMs - event.acceptedMs > RETENTION_MS;
      hold(8, right, () => `${event.name} was not routed to ${who}, which may get it`);
      undecided.delete(ref);
    }
  }
  for (const ref of got) hold(1, routed.has(ref), () => `${who} got ${nameOf(ref)}, which is not for it`);
}

/** Checks that repeated deliveries were requested and paid for (invariants 17, 20). */
function noteReplays(receiver: Receiver, open: ReadonlySet<string>, { who, nameOf, replayedEvent }: Comparison): void {
  for (const name of open) {
    const [ref = '', replayId] = name.split(':');
    if (replayId === undefined || receiver.open.has(name) || receiver.final.has(name)) continue;
    const event = replayedEvent(ref, replayId);
    hold(20, event !== undefined, () => `${nameOf(ref)} comes again to ${who} by ${replayId}, which nobody paid for`);
    receiver.replayed.add(name);
    receiver.open.set(name, { event, replayId, attempts: 0, dueMs: 0 });
  }
}

/**
 * Checks that open deliveries remain open, including their attempts. Only the retention period can end them without a
 * request.
 */
function noteEnds(receiver: Receiver, part: ReadPart, comparison: Comparison): void {
  const { who, nameOf, nowMs, unanswered } = comparison;
  const open = part.open.get(receiver.slot) ?? NONE;
  const mayGo = receiver.leaving && !part.dump.subs.has(receiver.slot);
  for (const [name, delivery] of receiver.open) {
    const { event, replayId } = delivery;
    const reported = unanswered.get(name);
    if (open.has(name)) {
      const lane = receiver.slot + event.groupKey + (replayId === undefined ? '' : `\x01${replayId}`);
      const attempts = Number(part.dump.tries.get(`${lane}\0${event.ref}`)?.split(' ')[0] ?? 0);
      const counted = reported !== undefined && attempts === delivery.attempts + 1;
      if (counted) noteFailure(receiver, name, reported);
      hold(
        13,
        attempts === delivery.attempts,
        () => `${event.name} has ${attempts} attempts, not ${delivery.attempts}`,
      );
      continue;
    }
    const final = reported?.outcome === 'delivered' || reported?.outcome === 'dead' ? reported.outcome : 'expired';
    const right = final !== 'expired' || nowMs - event.acceptedMs > RETENTION_MS || mayGo;
    hold(13, right, () => `${event.name} is lost from the inbox of ${who}`);
    receiver.open.delete(name);
    if (!mayGo) receiver.final.set(name, final);
  }
  for (const name of open) {
    hold(17, receiver.open.has(name), () => `${nameOf(name.slice(0, 15))} is open again for ${who}`);
  }
}

/** Checks a failed attempt. */
export function noteFailure(receiver: Receiver, name: string, { outcome, dueMs = 0 }: Completion): void {
  const delivery = receiver.open.get(name);
  if (delivery === undefined) return;
  delivery.attempts++;
  delivery.dueMs = outcome === 'gone' ? 0 : dueMs;
  if (outcome === 'gone') receiver.disabled = true;
}

/**
 * Checks that a delivery's result is recorded once and does not change: replays do not affect the earlier result
 * of the event (invariant 17). Records of delivered events are removed with the events if no delivery has failed.
 */
function checkRecords(
  { slot, open, final, forgotten }: Receiver,
  { dump }: ReadPart,
  { who, nameOf, nowMs }: Comparison,
): void {
  const wordOf = (name: string) => (dump.records.get(slot + name) ?? []).map(({ outcome }) => outcome).join();
  for (const [name, is] of final) {
    const word = wordOf(name);
    if (word === '' && is === 'delivered' && nowMs - msOfRef(name.slice(0, 15)) > RETENTION_MS) {
      forgotten.add(name);
      continue;
    }
    hold(17, word === is, () => `${nameOf(name.slice(0, 15))} was ${is} for ${who}, and its record says ${word}`);
  }
  for (const name of open.keys()) {
    hold(17, wordOf(name) === '', () => `${nameOf(name.slice(0, 15))} is open for ${who}, and has a record`);
  }
}

function checkCounts({ slot, routed, replayed, final }: Receiver, { dump }: ReadPart, who: string): void {
  const [, counted, , delivered, dead, expired, skipped, again] = (dump.counts.get(slot) ?? '').split(' ').map(Number);
  const counts = [counted, again, delivered, dead, expired, skipped].map(each => each || 0).join();
  const ended = [...final.values()];
  const count = (is: Final) => ended.filter(each => each === is).length;
  const known = [routed.size, replayed.size, ...FINALS.map(count)].join();
  hold(13, counts === known, () => `${who} counts ${counts}; routed, replayed, ${FINALS.join(', ')}: it is ${known}`);
}

/** Compares the state of a receiver in a part with the expected state, and adopts possible changes of a step. */
export function compareSlot(receiver: Receiver, part: ReadPart, comparison: Comparison): void {
  noteDecided(receiver, part, comparison);
  // The remaining data of a deleted subscription is removed in slices.
  if (receiver.ended) return;
  noteReplays(receiver, part.open.get(receiver.slot) ?? NONE, comparison);
  noteEnds(receiver, part, comparison);
  if (!part.dump.subs.has(receiver.slot)) return;
  checkRecords(receiver, part, comparison);
  checkCounts(receiver, part, comparison.who);
}
