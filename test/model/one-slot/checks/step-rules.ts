import { hold } from '../../state/violation.ts';
import type { ExchangeReply } from '../part/exchange.ts';
import type { IngestCall, IngestReply } from '../part/ingest.ts';
import {
  countsOf,
  groupKeyOf,
  isRoutedTo,
  type Part,
  positionOf,
  readWaitMember,
  SUSPECT,
  slotOf,
} from '../part/part.ts';
import type { Call } from '../part/step.ts';
import type { Gates } from '../world/world.ts';

export interface Judged {
  readonly before: Part;
  readonly after: Part;
  readonly call: Call;
  readonly reply: unknown;
  /** The controller's responses, including this call. */
  readonly gates: Gates;
  readonly now: number;
}

/** Checks that accepted events are kept, and are only stored once. */
function checkLog({ before, after, call, reply }: Judged): void {
  const kept = before.log.every((entry, i) => after.log[i] === entry);
  hold(12, kept, () => 'an accepted event is gone');
  if (call.step !== 'ingest') return;
  const { events } = call as IngestCall;
  for (const [i, { ref }] of (reply as IngestReply).answers.entries()) {
    const id = events[i]?.id;
    const stored = after.log.filter(entry => entry.id === id);
    hold(12, stored.length === 1 && stored[0]?.ref === ref, () => `${id} is stored ${stored.length} times`);
  }
}

/** Checks that, when the position of a slot passes an event, the event is routed if and only if its gate allows it. */
function checkRouting({ before, after, gates }: Judged): void {
  for (const slot of Object.keys(after.subs)) {
    const [from, to] = [positionOf(before, slot), positionOf(after, slot)];
    hold(13, to >= from, () => `the position of ${slot} goes back from ${from} to ${to}`);
    const stays = gates.open[slot] === true || to === from;
    hold(13, stays, () => `${slot} is paused, and its position moves from ${from} to ${to}`);
    for (const entry of after.log) {
      const lane = slot + entry.groupKey;
      const since = gates.active[lane];
      const allowed =
        since !== undefined && since < entry.ref && gates.open[slot] === true && (gates.skipped[slot] ?? 0) < entry.ref;
      const was = isRoutedTo(before, entry, slot);
      const is = isRoutedTo(after, entry, slot);
      hold(13, !was || is, () => `${entry.ref} was routed to ${slot}, and is not any more`);
      if (was) continue;
      if (is) {
        hold(1, allowed, () => `${entry.ref} is routed to ${slot}, whose gate is closed for it`);
        hold(13, entry.ref > from, () => `${entry.ref} is routed to ${slot}, which had passed it`);
      } else if (allowed && entry.ref > from) {
        hold(13, entry.ref > to, () => `${slot} passes ${entry.ref}, and does not get it`);
      }
    }
  }
}

/**
 * Checks that no claims are made after closing a gate, or before a lane of the same slot that has been waiting longer.
 */
function checkClaims({ before, after, call, reply, gates }: Judged): void {
  for (const [lane, { mark }] of Object.entries(after.claims)) {
    if (before.claims[lane]?.mark === mark) continue;
    const slot = slotOf(lane);
    const open = gates.open[slot] === true && gates.active[lane] !== undefined;
    hold(2, open, () => `${lane} is claimed though its gate is closed`);
    if (call.step === 'ingest') {
      const older = waitingSince(before, slot, Number.POSITIVE_INFINITY);
      hold(18, older === undefined, () => `the new ${lane} passes ${older}, which waits`);
    } else if (call.step === 'exchange') {
      const given = (reply as ExchangeReply).claims.find(claim => claim.mark === mark);
      const older = waitingSince(after, slot, given?.due ?? 0);
      hold(18, older === undefined, () => `${lane} passes ${older}, which waits for longer`);
    }
  }
}

/**
 * Returns a lane of the slot that has been waiting since before the given time. Failed or expired lanes may have to
 * wait for other lanes.
 */
function waitingSince(part: Part, slot: string, due: number): string | undefined {
  return part.wait
    .map(readWaitMember)
    .filter(({ lane, again }) => slotOf(lane) === slot && part.lanes[lane] === 'w' && !part.off[lane] && !again)
    .filter(({ lane }) => (part.tries[`${lane} ${part.pend[lane]?.[0]}`]?.lapses ?? 0) < SUSPECT)
    .find(other => other.due < due)?.lane;
}

/** Checks that the lane of a deactivated key is not continued, regardless of its first event. */
function checkClosedLanes({ after, gates }: Judged): void {
  for (const [lane, { flag }] of Object.entries(after.claims)) {
    if (gates.active[lane] !== undefined) continue;
    hold(5, flag === '-', () => `${lane} is closed, and its claim would go on in it (${groupKeyOf(lane)})`);
  }
}

export function checkStep(judged: Judged): void {
  checkLog(judged);
  checkRouting(judged);
  checkClaims(judged);
  checkClosedLanes(judged);
  const { after } = judged;
  for (const slot of Object.keys(after.subs)) {
    const { claims } = countsOf(after, slot);
    const cap = after.subs[slot]?.cap ?? 0;
    hold(13, claims <= 2 * cap, () => `${slot} has ${claims} claims`);
  }
}
