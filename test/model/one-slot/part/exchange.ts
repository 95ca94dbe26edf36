import type { Message } from './ingest.ts';
import {
  addPending,
  claim,
  count,
  dropPending,
  endClaim,
  type Given,
  headTries,
  letIdle,
  letWait,
  mayClaim,
  record,
  waitingOf,
} from './lanes.ts';
import {
  AGE,
  type Claim,
  type Context,
  countsOf,
  type Draft,
  entryOf,
  LEASE,
  MOST_CLAIMS,
  readWaitMember,
  SUSPECT,
  slotOf,
} from './part.ts';

/** An attempt's result: delivered, to be repeated, or dead; or released without an attempt. */
export type Outcome = 'delivered' | 'failed' | 'dead' | 'returned';

export interface Completion {
  readonly lane: string;
  readonly ref: number;
  readonly mark: number;
  readonly outcome: Outcome;
  /** The due time of the next attempt. For released claims, the time since which the lane has been waiting. */
  readonly due: number;
}

export interface ExchangeCall {
  readonly step: 'exchange';
  readonly by: string;
  /** The number of the call, which increases with each call. */
  readonly call: number;
  /** The maximum number of claims. */
  readonly limit: number;
  /** The number of pushed claims that the dispatcher has read. */
  readonly seen: number;
  /** The number of claims that the dispatcher holds, including claims that it ends in this call. */
  readonly held: number;
  /** Whether one of these claims is a suspect. */
  readonly suspect: boolean;
  readonly done: readonly Completion[];
}

export interface ExchangeReply {
  /** False if the call was late and did not change anything. */
  readonly taken: boolean;
  /** Whether each completion was counted. */
  readonly counted: readonly boolean[];
  readonly claims: readonly Given[];
  /** The total number of claims that were pushed to the dispatcher. */
  readonly pushed: number;
  /** Whether more events could be claimed immediately. */
  readonly more: boolean;
  /** Whether a slot or the part is behind. */
  readonly behind: boolean;
  /** The due time of the next retry, or 0 if there is none. */
  readonly due: number;
  /** The time returned by TIME. */
  readonly now: number;
}

interface Room {
  readonly by: string;
  readonly limit: number;
  held: number;
  /**
   * A dispatcher holds at most one event that has lapsed twice, so that an event which crashes the dispatcher does not
   * affect others. This does not apply after the first lapse because all claims of a crashed dispatcher would otherwise
   * be processed one by one.
   */
  suspect: boolean;
  readonly given: Given[];
}

/** Claims the first event of a lane that is not held. */
function take(part: Draft, lane: string, due: number, room: Room, context: Context): void {
  const head = part.pend[lane]?.[0] as number;
  dropPending(part, lane, head);
  const given = claim(part, lane, head, room.by, due, context);
  room.given.push(given);
  room.held++;
  room.suspect ||= given.suspect;
}

/** Continues after a claim that has ended permanently. */
function goOn(part: Draft, lane: string, room: Room | undefined, context: Context): void {
  if (part.pend[lane] === undefined) return letIdle(part, lane);
  const slot = slotOf(lane);
  const { attempts, lapses } = headTries(part, lane);
  const nobodyWaits =
    context.defect === 'next of a lane before those that wait' ||
    (!countsOf(part, slot).waiting && Object.keys(part.turn).length === 0);
  const takes =
    room !== undefined &&
    nobodyWaits &&
    !part.off[lane] &&
    lapses < SUSPECT &&
    room.held < room.limit &&
    room.given.length < MOST_CLAIMS &&
    mayClaim(part, slot, room.by, attempts > 0, context);
  if (takes) take(part, lane, context.now, room, context);
  else letWait(part, lane, context.now);
}

/** Returns the event of a claim to its lane. If the event has ended in the meantime, the lane continues. */
export function giveBack(part: Draft, lane: string, held: Claim, due: number, context: Context): void {
  endClaim(part, lane, held, context);
  if (part.records[entryOf(lane, held.ref)] !== undefined && context.defect !== 'what has ended is put back') {
    return goOn(part, lane, undefined, context);
  }
  addPending(part, lane, held.ref);
  letWait(part, lane, due);
}

/**
 * Ends an attempt of an event that is now claimed by a different dispatcher, or not claimed at all. A delivery counts
 * as long as the event is open.
 */
function completeForeign(part: Draft, { lane, ref }: Completion, context: Context): boolean {
  if (part.claims[lane]?.ref === ref) {
    // The attempt in progress holds the lane until it is over.
    const open = part.records[entryOf(lane, ref)] === undefined;
    record(part, lane, ref, 'delivered');
    return open;
  }
  if (!part.pend[lane]?.includes(ref)) return false;
  const wasHead = part.pend[lane]?.[0] === ref;
  dropPending(part, lane, ref);
  record(part, lane, ref, 'delivered');
  if (part.claims[lane] !== undefined) {
    const held = part.claims[lane];
    if (part.pend[lane] === undefined && held.flag === '+') part.claims[lane] = { ...held, flag: ' ' };
  } else if (part.pend[lane] === undefined) letIdle(part, lane);
  else if (wasHead && part.lanes[lane] === 'r' && context.defect !== 'late delivery leaves its lane retrying') {
    delete part.retry[lane];
    letWait(part, lane, context.now);
  }
  return true;
}

function complete(part: Draft, completion: Completion, room: Room, context: Context): boolean {
  const { lane, ref, mark, outcome, due } = completion;
  const held = part.claims[lane];
  const own = held?.ref === ref && (held.mark === mark || context.defect === "completion under another's claim");
  if (!own) return outcome === 'delivered' && completeForeign(part, completion, context);
  const slot = slotOf(lane);
  if (outcome === 'returned') {
    // Otherwise, claims of an endpoint that does not respond would be released and claimed again all the time.
    if (countsOf(part, slot).claims > (part.subs[slot]?.cap ?? 0)) count(part, slot, { slow: true });
    giveBack(part, lane, held, due, context);
    return true;
  }
  if (outcome === 'delivered' && context.now - held.at <= AGE) count(part, slot, { slow: false });
  endClaim(part, lane, held, context);
  const entry = entryOf(lane, ref);
  if (outcome === 'delivered' || outcome === 'dead' || part.records[entry] !== undefined) {
    record(part, lane, ref, outcome === 'dead' ? 'dead' : 'delivered');
    goOn(part, lane, room, context);
    return true;
  }
  part.tries[entry] = { attempts: (part.tries[entry]?.attempts ?? 0) + 1, lapses: 0 };
  addPending(part, lane, ref);
  part.lanes[lane] = 'r';
  part.retry[lane] = due;
  return true;
}

/** Makes lanes with due retries wait. */
export function releaseDue(part: Draft, { now }: Context): boolean {
  const due = Object.keys(part.retry).filter(lane => (part.retry[lane] ?? 0) <= now);
  for (const lane of due.sort()) {
    const since = part.retry[lane] ?? now;
    delete part.retry[lane];
    letWait(part, lane, since);
  }
  return due.length > 0;
}

/** Claims up to the share of one slot. Returns false if there is nothing more to claim at the moment. */
function serve(part: Draft, slot: string, share: number, room: Room, context: Context): boolean {
  let left = share;
  for (const member of waitingOf(part, slot)) {
    const { lane, due, again } = readWaitMember(member);
    const stale =
      part.lanes[lane] !== 'w' || (part.off[lane] && context.defect !== 'claims do not ask whether a key is off');
    if (stale) {
      part.wait = part.wait.filter(other => other !== member);
      continue;
    }
    if (left === 0 || room.held >= room.limit) return true;
    if (!mayClaim(part, slot, room.by, false, context)) {
      // The slot returns when its next attempt is completed.
      delete part.turn[slot];
      return false;
    }
    if (again && !mayClaim(part, slot, room.by, true, context)) continue;
    if (headTries(part, lane).lapses >= SUSPECT && room.suspect) continue;
    part.wait = part.wait.filter(other => other !== member);
    take(part, lane, due, room, context);
    left--;
  }
  if (waitingOf(part, slot).length === 0) {
    count(part, slot, { waiting: false });
    delete part.turn[slot];
  }
  return false;
}

/** Claims waiting events slot by slot, starting with the slot that was served longest ago. */
function claimWaiting(part: Draft, room: Room, context: Context): boolean {
  const slots = Object.keys(part.turn).sort((a, b) => (part.turn[a] ?? 0) - (part.turn[b] ?? 0) || (a < b ? -1 : 1));
  const most = Math.min(room.limit - room.held, MOST_CLAIMS - room.given.length);
  if (most <= 0) return slots.length > 0 && room.held < room.limit;
  const share = Math.max(1, Math.ceil(most / Math.max(1, slots.length)));
  let more = false;
  for (const slot of slots) {
    if (!part.subs[slot]?.open) {
      delete part.turn[slot];
      continue;
    }
    const left = Math.min(share, MOST_CLAIMS - room.given.length);
    if (left <= 0) {
      more = true;
      continue;
    }
    const before = room.given.length;
    if (serve(part, slot, left, room, context)) more = true;
    if (room.given.length === before || part.turn[slot] === undefined) continue;
    const served = part.meta.served + 1;
    part.meta = { ...part.meta, served };
    part.turn[slot] = served;
  }
  return more && room.held < room.limit;
}

export function isBehind(part: Draft): boolean {
  const { ready, hold } = part.meta;
  return ready && (hold !== '' || Object.keys(part.pos).some(slot => part.subs[slot]?.open === true));
}

/** Ends attempts, continues with their lanes, and claims waiting events. */
export function exchange(part: Draft, call: ExchangeCall, context: Context): [ExchangeReply, (Message | undefined)?] {
  const { by, limit, done } = call;
  const { now, defect } = context;
  const known = part.ready[by];
  const pushed = known?.pushed ?? call.seen;
  const refused = known !== undefined && call.call <= known.call && defect !== 'calls are not numbered';
  if (refused) return [{ taken: false, counted: [], claims: [], pushed, more: false, behind: false, due: 0, now }];
  // It holds the claims that it has reported, and the claims that were pushed since then.
  const reported = call.held - done.length + pushed - call.seen;
  const room: Room = { by, limit, held: Math.max(0, reported), suspect: call.suspect, given: [] };
  // Released claims come first because they have been waiting longer than the next events in other lanes.
  const back = done.filter(({ outcome }) => outcome === 'returned');
  const ended = done.filter(({ outcome }) => outcome !== 'returned');
  const taken = new Set([...back, ...ended].filter(completion => complete(part, completion, room, context)));
  const counted = done.map(completion => taken.has(completion));
  if (defect === 'room is counted, not said') {
    room.held = Math.max(0, (known?.held ?? 0) - counted.filter(Boolean).length + room.given.length);
  }
  releaseDue(part, context);
  const more = claimWaiting(part, room, context);
  part.ready[by] = { renewed: now, until: now + LEASE, call: call.call, limit, held: room.held, pushed };
  const due = Math.min(...Object.values(part.retry));
  return [
    {
      taken: true,
      counted,
      claims: room.given,
      pushed,
      more,
      behind: isBehind(part),
      due: Number.isFinite(due) ? due : 0,
      now,
    },
  ];
}
