import { EVENT_STATES, type EventState, OPEN_STATES } from '../../core/events/event-state.ts';
import type { EventRange } from '../../plane/inbox-reader.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { partKeys } from '../keys.ts';
import { refOfMs } from '../lanes/ref.ts';
import { createReadDetails, type Details } from './details.ts';
import type { SlotOfPart } from './find-part.ts';
import { parseProgress } from './progress.ts';

const WALK = readNamedScript(new URL('walk.lua', import.meta.url));
/** The number of names in each call. */
const LOOKED_AT = 1_000;
/** The number of calls for details that are made for a page. */
const CALLS = 32;
const FINAL_STATES: readonly EventState[] = ['dead', 'skipped', 'expired'];
/** Behind all refs. */
const END = 'g';

export interface PartWalk extends EventRange {
  readonly newestFirst?: boolean;
  /** The last name on the previous page, in the part format. */
  readonly after?: string | undefined;
  readonly most: number;
}

/** A delivery, including its state. */
export interface FoundDelivery extends Omit<Details, 'progress'> {
  readonly ref: string;
  readonly replayId: string | undefined;
  readonly progress: NonNullable<Details['progress']>;
}

export interface PartPage {
  readonly answer: 'OK';
  readonly events: readonly FoundDelivery[];
  readonly after: string | undefined;
}

/** A page of the events of a slot. See `walkInbox` for the format. */
export type WalkSlot = (at: SlotOfPart, walk: PartWalk) => Promise<PartPage | { readonly answer: 'GONE' }>;

type Source = 'listed' | 'final' | 'open';

/** `ref` or `ref:replay`. Pages are sorted by this. */
export function parseName(name: string): { readonly ref: string; readonly replayId: string | undefined } {
  const [ref = '', replayId] = name.split(':');
  return { ref, replayId };
}

function isTest(ref: string): boolean {
  return ref.slice(11) >= 'ffe0';
}

function sourceOf(states: ReadonlySet<EventState>): Source {
  if ([...states].every(state => FINAL_STATES.includes(state))) return 'final';
  return [...states].every(state => OPEN_STATES.includes(state)) ? 'open' : 'listed';
}

/** The names from the first one up to (but not including) the second one. */
function boundsOf({ fromMs, toMs, after, newestFirst }: PartWalk): [from: string, to: string] {
  const from = fromMs === undefined ? '' : refOfMs(fromMs);
  const to = toMs === undefined ? END : refOfMs(Math.min(toMs, 16 ** 11 - 1));
  if (after === undefined) return [from, to];
  // The next name after a name is the name followed by a NUL.
  return newestFirst === true ? [from, after < to ? after : to] : [after < from ? from : `${after}\0`, to];
}

/** Open deliveries are not sorted. */
function orderOpen(flat: readonly string[], wanted: ReadonlySet<EventState>, walk: PartWalk): string[] {
  const [from, to] = boundsOf(walk);
  const names: string[] = [];
  for (let at = 0; at < flat.length; at += 3) {
    const name = flat[at] as string;
    const progress = parseProgress(name.slice(0, 15), flat[at + 2] as string);
    if (progress !== undefined && wanted.has(progress.state) && name >= from && name < to) names.push(name);
  }
  names.sort();
  return walk.newestFirst === true ? names.reverse() : names;
}

export function createWalkSlot(redis: ScriptClient): WalkSlot {
  const readDetails = createReadDetails(redis);

  async function look({ part, slot }: SlotOfPart, walk: PartWalk, source: Source, count: number) {
    const [from, to] = boundsOf(walk);
    const args = { gen: part.gen, slot, source, from, to, reverse: walk.newestFirst === true ? 1 : 0, count };
    const [word, ...rest] = await callScript(redis, WALK, { keys: partKeys(part), args });
    return word === 'OK' ? (rest as string[]) : (word as 'GONE' | 'MANY');
  }

  /** Reads details until there are enough of them. `full` means that there are additional names. */
  async function describe(
    at: SlotOfPart,
    names: readonly string[],
    wanted: ReadonlySet<EventState>,
    { most }: PartWalk,
    full: boolean,
  ): Promise<PartPage | { readonly answer: 'GONE' }> {
    const events: FoundDelivery[] = [];
    for (let done = 0, calls = 0; done < names.length; calls++) {
      if (calls === CALLS) return { answer: 'OK', events, after: names[done - 1] };
      const asked = names.slice(done, done + Math.max(16, most - events.length)).map(parseName);
      const details = await readDetails(at, asked);
      if (details === 'GONE') return { answer: 'GONE' };
      for (const [i, { event, progress }] of details.entries()) {
        const { ref, replayId } = asked[i] as (typeof asked)[number];
        done++;
        if (progress === undefined || !wanted.has(progress.state) || isTest(ref)) continue;
        events.push({ ref, replayId, event, progress });
        if (events.length === most && (done < names.length || full)) {
          return { answer: 'OK', events, after: names[done - 1] };
        }
      }
    }
    return { answer: 'OK', events, after: full ? names.at(-1) : undefined };
  }

  return async function walkSlot(at, walk) {
    const wanted = new Set(walk.states ?? EVENT_STATES);
    const count = wanted.size === EVENT_STATES.length ? Math.min(walk.most, LOOKED_AT) : LOOKED_AT;
    let source = sourceOf(wanted);
    let reply = await look(at, walk, source, count);
    if (reply === 'MANY') {
      source = 'listed';
      reply = await look(at, walk, source, count);
    }
    if (!Array.isArray(reply)) return { answer: 'GONE' };
    if (source === 'open') return describe(at, orderOpen(reply, wanted, walk), wanted, walk, false);
    const names = (reply[0] as string).split('\n').filter(Boolean);
    return describe(at, names, wanted, walk, names.length === count);
  };
}
