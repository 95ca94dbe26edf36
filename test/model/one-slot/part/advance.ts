import { activeSlots, addToLane, type Message, WAITING } from './ingest.ts';
import { addPending, letWait } from './lanes.ts';
import { type Context, type Draft, isRoutedTo, MOST_ENTRIES, MOST_REFERENCES, tailOf } from './part.ts';

export interface AdvanceCall {
  readonly step: 'advance';
  /**
   * Selects the cohort that is furthest behind, instead of the one closest to the tail. Callers take turns, so that
   * each cohort is completed eventually.
   */
  readonly furthest: boolean;
  /** The position that the caller has read before. Only used by a defect. */
  readonly from?: Readonly<Record<string, number>> | undefined;
  /** Slots which were at the tail. Only used by a defect. */
  readonly join?: readonly string[] | undefined;
}

export interface AdvanceReply {
  /** Whether there is more work that could continue immediately. */
  readonly more: boolean;
  /** Slots which reached the tail. Only used by a defect. */
  readonly arrived: readonly string[];
}

interface Cohort {
  readonly from: number;
  readonly slots: readonly string[];
  /** Returns all slots that follow the part's own position, which is kept during a hold. */
  readonly held: boolean;
}

/** Returns the open slots by their position, starting near the tail. */
function cohorts(part: Draft, from: AdvanceCall['from']): Cohort[] {
  const { hold, pos } = part.meta;
  const open = Object.keys(part.subs)
    .filter(slot => part.subs[slot]?.open === true)
    .sort();
  const by = new Map<number, string[]>();
  for (const slot of open) {
    const at = from === undefined ? part.pos[slot] : (from[slot] ?? part.pos[slot]);
    if (at !== undefined) by.set(at, [...(by.get(at) ?? []), slot]);
  }
  const all: Cohort[] = [...by].map(([at, slots]) => ({ from: at, slots, held: false }));
  if (hold !== '') all.push({ from: pos, slots: open.filter(slot => part.pos[slot] === undefined), held: true });
  return all.sort((a, b) => b.from - a.from);
}

/**
 * Routes an event to the allowed slots of the cohort. Returns false if it had to stop before all of them have received
 * it.
 */
function routeTo(
  part: Draft,
  index: number,
  cohort: Cohort,
  first: boolean,
  budget: { left: number },
  { now, defect }: Context,
): 'done' | 'full' | 'short' {
  const entry = part.log[index] as Draft['log'][number];
  const { ref, groupKey, cost } = entry;
  const since = defect === 'since by the clock' ? ref + 100 : ref;
  for (const slot of activeSlots(part, groupKey, since)) {
    if (!cohort.slots.includes(slot)) continue;
    // A call that stopped within a wide event left its position before this event.
    if (first && isRoutedTo(part, entry, slot)) {
      if (defect === 'charged again when a call goes on') {
        part.meta = { ...part.meta, used: part.meta.used + cost };
      }
      continue;
    }
    if (budget.left === 0) return 'full';
    if (part.meta.used + cost > part.meta.granted) return 'short';
    budget.left--;
    part.late[ref] = [...(part.late[ref] ?? []), slot].sort();
    const lane = slot + groupKey;
    if (!addToLane(part, lane, ref, cost)) continue;
    addPending(part, lane, ref);
    letWait(part, lane, now);
  }
  return 'done';
}

/** Ends the hold at the tail, where no position is required. */
function arrive(part: Draft, cohort: Cohort, at: number, last: boolean, { defect }: Context): void {
  if (cohort.held) {
    part.meta = last ? { ...part.meta, hold: '', pos: 0 } : { ...part.meta, pos: at };
    if (!last) return;
    for (const slot of Object.keys(part.pos)) {
      if (part.subs[slot]?.open === true && part.pos[slot] === at) delete part.pos[slot];
    }
    return;
  }
  const { hold, pos } = part.meta;
  const joins = hold === '' ? last : at === pos;
  for (const slot of cohort.slots) {
    if (joins && defect !== 'live in a later step') delete part.pos[slot];
    else part.pos[slot] = at;
  }
}

/** Continues routing for one of the cohorts that are behind. */
export function advance(part: Draft, call: AdvanceCall, context: Context): [AdvanceReply, (Message | undefined)?] {
  if (!part.meta.ready) return [{ more: false, arrived: [] }];
  for (const slot of call.join ?? []) delete part.pos[slot];
  const all = cohorts(part, call.from);
  // A slot at the tail already waits for the hold to end.
  const tail = tailOf(part);
  const those = all.filter(({ from, held }) => held || from < tail || part.meta.hold === '');
  const cohort = call.furthest ? those.at(-1) : those[0];
  if (cohort === undefined) return [{ more: false, arrived: [] }];
  const nearer = all.filter(({ from }) => from > cohort.from).map(({ from }) => from);
  const stop = Math.min(tail, ...nearer);
  const budget = { left: MOST_REFERENCES };
  let [at, read, stopped] = [cohort.from, 0, 'done' as 'done' | 'full' | 'short'];
  for (const [index, { ref }] of part.log.entries()) {
    if (ref <= cohort.from || ref > stop) continue;
    if (read === MOST_ENTRIES) {
      stopped = 'full';
      break;
    }
    stopped = routeTo(part, index, cohort, read === 0, budget, context);
    if (stopped !== 'done') break;
    read++;
    at = ref;
  }
  if (stopped === 'done') at = stop;
  if (stopped === 'short') {
    const { hold, pos } = part.meta;
    part.meta = { ...part.meta, hold: 'tokens', pos: hold === '' ? tail : pos };
  }
  const progressed = budget.left < MOST_REFERENCES || at > cohort.from || stopped === 'done';
  arrive(part, cohort, at, at === tail, context);
  const rest = cohorts(part, undefined).some(({ from, held }) => held || from < tail || part.meta.hold === '');
  const arrived = at === tail ? cohort.slots : [];
  return [{ more: progressed && rest, arrived }, budget.left < MOST_REFERENCES ? WAITING : undefined];
}
