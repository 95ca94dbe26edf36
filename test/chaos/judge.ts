import { checkConservation, type PartState } from './part-reader.ts';
import { type Arrival, type Hit, isActive, type Sample, type SentEvent, SUBSCRIPTIONS } from './record.ts';

/** All records of a run. */
export interface Records {
  readonly events: readonly SentEvent[];
  readonly arrivals: readonly Arrival[];
  readonly hits: readonly Hit[];
  readonly samples: readonly Sample[];
  /** The time immediately before the block was removed. */
  readonly liftedMs: number;
  /** The content of the part at the end. */
  readonly state: PartState;
}

/** The time after which a claim is taken over if its dispatcher is not active, in milliseconds. */
const TAKE_OVER_MS = 3_000;
const TOKEN_BYTES = 16_384;
const EXAMPLES = 4;

/** `what`, the number of occurrences, and the first examples. Empty if there are none. */
function tell(what: string, found: readonly string[]): string[] {
  return found.length === 0 ? [] : [`${found.length} ${what}, as ${found.slice(0, EXAMPLES).join(', ')}`];
}

const nameOf = ({ subscription, id, key }: Arrival) => `${id} of ${key} to ${subscription}`;

/**
 * Separates the first arrival of each event at each subscription from repetitions, which include the previous arrival.
 */
function split(arrivals: readonly Arrival[]) {
  const last = new Map<string, Arrival>();
  const firsts: Arrival[] = [];
  const repeats: { readonly before: Arrival; readonly again: Arrival }[] = [];
  for (const arrival of arrivals) {
    const name = `${arrival.subscription} ${arrival.id}`;
    const before = last.get(name);
    if (before === undefined) firsts.push(arrival);
    else repeats.push({ before, again: arrival });
    last.set(name, arrival);
  }
  return { firsts, repeats };
}

export type Repeats = ReturnType<typeof split>['repeats'];

/**
 * The number of times that a fault may cause claims to be taken over: once, and once more each time that a claim
 * expires in the meantime.
 */
const timesOf = ({ fromMs, toMs, losesResults }: Hit) =>
  losesResults ? 1 + Math.floor((toMs - fromMs) / TAKE_OVER_MS) : 0;

/**
 * Returns the maximum number of repeated deliveries, i.e. those in progress during a fault. If an attempt's result
 * did not reach Redis, the attempt is repeated each time its claim is lost. For each fault, this is the maximum number
 * of claims in the part during the fault.
 */
export function boundOf({ hits, samples }: Pick<Records, 'hits' | 'samples'>): number {
  return hits.reduce((sum, hit) => {
    const during = samples.filter(({ atMs }) => atMs >= hit.fromMs - 100 && atMs <= hit.toMs + 100);
    return sum + timesOf(hit) * Math.max(0, ...during.map(({ claims }) => claims));
  }, 0);
}

/**
 * Returns all repetitions that are not explained by a fault. A repetition is explained by a fault between the two
 * arrivals of the event. A lane (subscription and group key) has one attempt under way at a time so that each fault
 * explains one repetition in each lane.
 */
function unexplained(repeats: Repeats, hits: readonly Hit[]): string[] {
  const used = new Map<string, number>();
  return repeats.flatMap(({ before, again }) => {
    const at = hits.findIndex((hit, number) => {
      const overlaps = hit.fromMs <= again.atMs && hit.toMs + TAKE_OVER_MS >= before.atMs;
      return overlaps && (used.get(`${number} ${again.subscription} ${again.key}`) ?? 0) < timesOf(hit);
    });
    const name = `${at} ${again.subscription} ${again.key}`;
    used.set(name, (used.get(name) ?? 0) + 1);
    return at >= 0 ? [] : [`${nameOf(again)}, ${Math.round(again.atMs - before.atMs)} ms after`];
  });
}

function inverted(firsts: readonly Arrival[], numberOf: ReadonlyMap<string, number>): string[] {
  const newest = new Map<string, Arrival>();
  return firsts.flatMap(arrival => {
    const lane = `${arrival.subscription} ${arrival.key}`;
    const before = newest.get(lane);
    const isLate = before !== undefined && (numberOf.get(arrival.id) ?? 0) < (numberOf.get(before.id) ?? 0);
    if (!isLate) newest.set(lane, arrival);
    return isLate ? [`${nameOf(arrival)} after ${before.id}`] : [];
  });
}

/** Reports counts and charges which do not match the events that were sent. */
function checkCounts({ events, state }: Records): string[] {
  const problems = checkConservation(state);
  let tokens = 0;
  let routed = 0;
  for (const name of SUBSCRIPTIONS) {
    const mine = events.filter(({ key }) => isActive(name, key));
    const counts = state.counts[name];
    tokens += mine.reduce((sum, { bytes }) => sum + Math.ceil(bytes / TOKEN_BYTES), 0);
    routed += counts.routed;
    if (counts.routed !== mine.length || counts.delivered !== mine.length) {
      const { routed: all, ...states } = counts;
      const shown = Object.entries(states).flatMap(([state, count]) => (count > 0 ? [`${count} ${state}`] : []));
      problems.push(`${name}: routed ${all} of ${mine.length} events: ${shown.join(', ')}`);
    }
  }
  if (state.charged !== tokens) problems.push(`charged ${state.charged} tokens for ${routed} deliveries of ${tokens}`);
  if (state.settled !== tokens) problems.push(`the account was charged ${state.settled} tokens instead of ${tokens}`);
  return problems;
}

export interface Judgement {
  /** The violations. Empty if there are none. */
  readonly problems: readonly string[];
  readonly repeats: number;
  /** The maximum number of repetitions. */
  readonly bound: number;
}

/** Compares the events that arrived with the events that were acknowledged. */
export function judge(records: Records): Judgement {
  const { events, arrivals, hits, liftedMs } = records;
  const { firsts, repeats } = split(arrivals);
  const arrived = new Set(firsts.map(({ subscription, id }) => `${subscription} ${id}`));
  const numberOf = new Map(events.map(({ id }, number) => [id, number]));
  const keyOf = new Map(events.map(({ id, key }) => [id, key]));
  const unacknowledged = events.filter(({ acknowledgedMs }) => acknowledgedMs === undefined);
  const lost = SUBSCRIPTIONS.flatMap(name =>
    events
      .filter(({ id, key, acknowledgedMs }) => {
        return acknowledgedMs !== undefined && isActive(name, key) && !arrived.has(`${name} ${id}`);
      })
      .map(({ id, key }) => `${id} of ${key} to ${name}`),
  );
  const shut = arrivals.filter(({ subscription, key, atMs }) => {
    return !isActive(subscription, key) || (subscription === 'blocked' && atMs < liftedMs);
  });
  const bound = boundOf(records);
  return {
    problems: [
      ...tell(
        'events never acknowledged',
        unacknowledged.map(({ id, key }) => `${id} of ${key}`),
      ),
      ...tell('acknowledged and lost', lost),
      ...tell('delivered out of order', inverted(firsts, numberOf)),
      ...tell('delivered past a closed gate', shut.map(nameOf)),
      ...tell('invented', arrivals.filter(({ id, key }) => keyOf.get(id) !== key).map(nameOf)),
      ...tell('repeated without a fault', unexplained(repeats, hits)),
      ...(repeats.length <= bound ? [] : [`${repeats.length} repeated, and ${bound} were in flight at the faults`]),
      ...checkCounts(records),
    ],
    repeats: repeats.length,
    bound,
  };
}
