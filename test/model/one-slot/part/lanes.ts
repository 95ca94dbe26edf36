import {
  type Claim,
  type Context,
  type Counts,
  countsOf,
  type Draft,
  entryOf,
  readWaitMember,
  SUSPECT,
  slotOf,
  type Tries,
  waitMember,
} from './part.ts';

/** A claim in a push or a response. */
export interface Given {
  readonly lane: string;
  readonly ref: number;
  readonly mark: number;
  /** The time of the claim, as returned by TIME. */
  readonly at: number;
  /**
   * The time since which the lane had been waiting. It is restored with a released claim, so that the lane keeps its
   * place.
   */
  readonly due: number;
  readonly attempts: number;
  /** Whether the event may crash its dispatchers: see `Room`. */
  readonly suspect: boolean;
}

export function count(part: Draft, slot: string, change: Partial<Counts>): void {
  part.counts[slot] = { ...countsOf(part, slot), ...change };
}

/** Adds a ref to the open and unclaimed refs of its lane. */
export function addPending(part: Draft, lane: string, ref: number): void {
  part.pend[lane] = [...(part.pend[lane] ?? []), ref].sort((a, b) => a - b);
}

export function dropPending(part: Draft, lane: string, ref: number): void {
  const rest = (part.pend[lane] ?? []).filter(other => other !== ref);
  if (rest.length > 0) part.pend[lane] = rest;
  else delete part.pend[lane];
}

/** Lets a lane wait for its turn. If its key was deactivated, it waits for its activation. */
export function letWait(part: Draft, lane: string, due: number): void {
  const slot = slotOf(lane);
  part.lanes[lane] = 'w';
  if (part.off[lane]) return;
  const member = waitMember(lane, headTries(part, lane).attempts > 0, due);
  if (!part.wait.includes(member)) part.wait = [...part.wait, member].sort();
  count(part, slot, { waiting: true });
  part.turn[slot] ??= 0;
}

/** Removes the state of a lane without any open refs. */
export function letIdle(part: Draft, lane: string): void {
  delete part.lanes[lane];
  delete part.retry[lane];
  delete part.off[lane];
}

/** Returns whether the dispatcher may claim another event of the slot. */
export function mayClaim(part: Draft, slot: string, by: string, again: boolean, { defect }: Context): boolean {
  const sub = part.subs[slot];
  if (sub === undefined || !sub.open) return false;
  const { claims, again: retries, slow, sole } = countsOf(part, slot);
  // A claim exists until its completion is written, so there may be more claims than attempts: up to twice as many if
  // one dispatcher has all of them, because each dispatcher only counts its own attempts.
  const alone = sole === by || defect === 'cap in each dispatcher';
  const most = alone && !slow ? 2 * sub.cap : sub.cap;
  if (claims >= most) return false;
  // Failed events leave a quarter of the cap (but at least one, if the cap is two or more) to first attempts.
  return !again || retries < Math.max(1, sub.cap - Math.ceil(sub.cap / 4));
}

/** Claims a ref of a lane. The caller must make sure that it is not in any `pend` afterwards. */
export function claim(part: Draft, lane: string, ref: number, by: string, due: number, { now }: Context): Given {
  const slot = slotOf(lane);
  const tries = part.tries[entryOf(lane, ref)];
  const again = (tries?.attempts ?? 0) > 0;
  const mark = part.meta.mark + 1;
  part.meta = { ...part.meta, mark };
  const flag = part.pend[lane] === undefined ? ' ' : '+';
  part.claims[lane] = { ref, by, mark, at: now, flag, again };
  delete part.lanes[lane];
  const counts = countsOf(part, slot);
  const sole = counts.claims === 0 || counts.sole === by ? by : '*';
  count(part, slot, { claims: counts.claims + 1, again: counts.again + (again ? 1 : 0), sole });
  return { lane, ref, mark, at: now, due, attempts: tries?.attempts ?? 0, suspect: (tries?.lapses ?? 0) >= SUSPECT };
}

/** Removes a claim from its dispatcher. The caller is responsible for its ref and its lane. */
export function endClaim(part: Draft, lane: string, { again, flag }: Claim, { defect }: Context): void {
  const slot = slotOf(lane);
  const counts = countsOf(part, slot);
  delete part.claims[lane];
  const claims = counts.claims - 1;
  const change = { claims, again: counts.again - (again ? 1 : 0), sole: claims === 0 ? '' : counts.sole };
  count(part, slot, change);
  // If the slot had reached its cap, it had no turn.
  if (counts.waiting && defect !== 'full slot does not come back') part.turn[slot] ??= 0;
  if (flag === '-') part.off[lane] = true;
}

/** Records the result of an event for a subscription, once. */
export function record(part: Draft, lane: string, ref: number, outcome: 'delivered' | 'dead'): void {
  const entry = entryOf(lane, ref);
  if (part.records[entry] !== undefined) return;
  part.records[entry] = outcome;
  delete part.tries[entry];
  const slot = slotOf(lane);
  const { delivered, failed } = countsOf(part, slot);
  count(part, slot, outcome === 'delivered' ? { delivered: delivered + 1 } : { failed: failed + 1 });
}

/**
 * Returns the waiting lanes of a slot in order: first attempts and retries, sorted by the time since which they have
 * been waiting.
 */
export function waitingOf(part: Draft, slot: string): readonly string[] {
  const due = (member: string) => readWaitMember(member).due;
  return part.wait.filter(member => member.startsWith(slot)).sort((a, b) => due(a) - due(b));
}

/** Returns the attempts and expired claims of a lane's first open ref. */
export function headTries(part: Draft, lane: string): Tries {
  const head = part.pend[lane]?.[0];
  return (head === undefined ? undefined : part.tries[entryOf(lane, head)]) ?? { attempts: 0, lapses: 0 };
}
