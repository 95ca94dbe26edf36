import { addPending, claim, count, type Given, letWait, mayClaim } from './lanes.ts';
import { type Context, countsOf, type Draft, MOST_REFERENCES, type Ready, slotOf, tailOf } from './part.ts';

export interface IngestCall {
  readonly step: 'ingest';
  readonly events: readonly { readonly id: string; readonly groupKey: string; readonly cost: number }[];
}

/**
 * There is one entry for each accepted event, starting with the first. Events that would write too many references are
 * left for the next call.
 */
export interface IngestReply {
  readonly answers: readonly { readonly ref: number; readonly duplicate: boolean }[];
}

/** A message published on the part's channel, in the step that claims. */
export interface Message {
  /** The owner of the claims. */
  readonly to: string;
  readonly claims: readonly Given[];
  /** The total number of claims pushed to the dispatcher, including these. */
  readonly pushed: number;
  /** Whether there are waiting events that have not been claimed, or a slot is behind. */
  readonly waiting: boolean;
}

export const WAITING: Message = { to: '', claims: [], pushed: 0, waiting: true };

/** Adds an event to a lane of a slot. Returns true for an idle lane, which the caller must process. */
export function addToLane(part: Draft, lane: string, ref: number, cost: number): boolean {
  const slot = slotOf(lane);
  part.meta = { ...part.meta, used: part.meta.used + cost };
  count(part, slot, { routed: countsOf(part, slot).routed + 1 });
  const claimed = part.claims[lane];
  if (claimed === undefined && part.lanes[lane] === undefined) return true;
  addPending(part, lane, ref);
  if (claimed?.flag === ' ') part.claims[lane] = { ...claimed, flag: '+' };
  return false;
}

/** Returns the slots whose key and subscription have been active since before the event. */
export function activeSlots(part: Draft, groupKey: string, ref: number): string[] {
  const since = part.keys[groupKey] ?? {};
  return Object.keys(since)
    .filter(slot => {
      const sub = part.subs[slot];
      return sub?.open === true && sub.since < ref && (since[slot] ?? 0) < ref;
    })
    .sort();
}

const roomOf = ({ until, limit, held }: Ready, now: number) => (until > now ? limit - held : 0);

/**
 * Returns the dispatcher with the most room. If there are several, returns the first by name. The room of a crashed
 * dispatcher does not increase anymore.
 */
function roomiest(part: Draft, now: number): string | undefined {
  const room = (name: string) => roomOf(part.ready[name] as Ready, now);
  const names = Object.keys(part.ready).filter(name => room(name) > 0);
  return names.sort((a, b) => room(b) - room(a) || (a < b ? -1 : 1))[0];
}

function whyHold(part: Draft, references: number, cost: number): Draft['meta']['hold'] {
  const { ready, used, granted } = part.meta;
  if (!ready) return 'gates';
  if (references > MOST_REFERENCES) return 'wide';
  return used + cost * references > granted ? 'tokens' : '';
}

/**
 * Stores events, routes and charges each of them, claims idle lanes for a dispatcher with free capacity, and pushes the
 * claims to it.
 */
export function ingest(part: Draft, { events }: IngestCall, context: Context): [IngestReply, (Message | undefined)?] {
  const { now, defect } = context;
  const answers: { ref: number; duplicate: boolean }[] = [];
  const claims: Given[] = [];
  const to = roomiest(part, now);
  const room = to === undefined ? 0 : roomOf(part.ready[to] as Ready, now);
  let waiting = false;
  let references = 0;
  for (const { id, groupKey, cost } of events) {
    const before = part.ids[id];
    if (before !== undefined && defect !== 'id is not looked up') {
      answers.push({ ref: before, duplicate: true });
      continue;
    }
    const tail = tailOf(part);
    const ms = Math.max(part.meta.ms, now);
    const seq = ms === part.meta.ms ? part.meta.seq + 1 : 1;
    const ref = ms * 100 + seq;
    const live = part.meta.ready ? activeSlots(part, groupKey, ref).filter(slot => part.pos[slot] === undefined) : [];
    if (part.meta.hold === '') {
      const hold = whyHold(part, live.length, cost);
      if (hold === '' && references + live.length > MOST_REFERENCES) break;
      if (hold !== '') part.meta = { ...part.meta, hold, pos: tail };
    }
    const routed = part.meta.hold === '' ? live : [];
    part.meta = { ...part.meta, ms, seq };
    part.ids[id] = ref;
    part.log = [...part.log, { ref, id, groupKey, cost, routed }];
    answers.push({ ref, duplicate: false });
    references += routed.length;
    // Dispatchers already know about subscriptions that are behind, but not about a new hold.
    if (part.meta.hold !== '') waiting = true;
    for (const slot of routed) {
      const lane = slot + groupKey;
      if (!addToLane(part, lane, ref, cost)) continue;
      const first = !countsOf(part, slot).waiting || defect === 'newcomers before those that wait';
      if (to !== undefined && claims.length < room && first && mayClaim(part, slot, to, false, context)) {
        claims.push(claim(part, lane, ref, to, now, context));
      } else {
        addPending(part, lane, ref);
        letWait(part, lane, now);
        waiting = true;
      }
    }
  }
  if (to === undefined || claims.length === 0) return [{ answers }, waiting ? WAITING : undefined];
  const ready = part.ready[to] as Ready;
  const pushed = ready.pushed + claims.length;
  part.ready[to] = { ...ready, held: ready.held + claims.length, pushed };
  return [{ answers }, { to, claims, pushed, waiting }];
}
