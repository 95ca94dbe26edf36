import { isDeepStrictEqual } from 'node:util';

/** What is counted may meet the beginning of a look at all of Redis: the least of so many counts. */
const TRIES = 5;

export interface Cost {
  /** Redis's, in order. */
  readonly commands: readonly string[];
  /** Requests to the API server, by what they write. */
  readonly writes: Readonly<Record<string, number>>;
  /** CPU of the controller, ms. */
  readonly cpuMs: number;
}

/** A change, and what it should cost at most. */
export interface Change {
  readonly make: (attempt: number) => Promise<unknown>;
  readonly commands: number;
  readonly writes: Cost['writes'];
}

/**
 * Returns what it costs to apply changes in turn. They are applied again, up to `TRIES` times, until each has cost no more
 * than it should.
 *
 * @param costOf applies a change, and returns what it cost
 * @param isCheap whether the CPU of a cost is what it should be
 */
export async function costsOf<const Changes extends readonly Change[]>(
  costOf: (change: Change, attempt: number) => Promise<Cost>,
  isCheap: (cost: Cost) => boolean,
  changes: Changes,
): Promise<{ [I in keyof Changes]: Cost }> {
  const tries = changes.map((): Cost[] => []);
  const fits = (change: Change) => (cost: Cost) =>
    cost.commands.length <= change.commands && isDeepStrictEqual(cost.writes, change.writes) && isCheap(cost);
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
