import { isDeepStrictEqual } from 'node:util';

/** The maximum number of measurements. A measurement can include commands of a sweep of Redis. */
const TRIES = 5;

export interface Cost {
  /** The commands sent to Redis, in order. */
  readonly commands: readonly string[];
  /** The number of requests to the API server that write, by `VERB resource/subresource`. */
  readonly writes: Readonly<Record<string, number>>;
  /** The CPU time of the controller, in milliseconds. */
  readonly cpuMs: number;
}

/** A change, and its maximum cost. */
export interface Change {
  readonly make: (attempt: number) => Promise<unknown>;
  readonly commands: number;
  readonly writes: Cost['writes'];
  /** A command that the change must not send. */
  readonly without?: string;
}

/**
 * Returns the cost of each change. Applies the changes in turn, up to `TRIES` times, until each of them has been within
 * its maximum cost.
 * @param costOf applies a change, and returns its cost
 * @param isCheap whether the CPU time of a cost is small enough
 */
export async function costsOf<const Changes extends readonly Change[]>(
  costOf: (change: Change, attempt: number) => Promise<Cost>,
  isCheap: (cost: Cost) => boolean,
  changes: Changes,
): Promise<{ [I in keyof Changes]: Cost }> {
  const tries = changes.map((): Cost[] => []);
  const fits = (change: Change) => (cost: Cost) =>
    cost.commands.length <= change.commands &&
    !cost.commands.some(command => command === change.without) &&
    isDeepStrictEqual(cost.writes, change.writes) &&
    isCheap(cost);
  for (let attempt = 0; attempt < TRIES; attempt++) {
    for (const [i, change] of changes.entries()) tries[i]?.push(await costOf(change, attempt));
    if (changes.every((change, i) => tries[i]?.some(fits(change)))) break;
  }
  return changes.map((change, i) => {
    const costs = tries[i] ?? [];
    const least = costs.reduce((a, b) => (b.commands.length < a.commands.length ? b : a));
    return { ...(costs.find(fits(change)) ?? least), cpuMs: Math.min(...costs.map(({ cpuMs }) => cpuMs)) };
  }) as { [I in keyof Changes]: Cost };
}
