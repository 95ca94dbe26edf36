/**
 * Shares divides an amount between holders that are not known in advance. A holder can take at most as much as it
 * leaves free. Alone, it gets half of the amount. If n holders want more than there is, each of them gets 1 / (n + 1).
 * The same amount is left for the next holder.
 */
export interface Shares {
  /** Returns the amount that nobody holds. Negative if more was added than there is. */
  readonly free: () => number;
  readonly heldBy: (holder: string) => number;
  /** Returns the amount that the holder can take in addition, not rounded. Negative if it holds more than its share. */
  readonly freeFor: (holder: string) => number;
  /** Adds to what the holder has, even if it exceeds its share. A negative count gives back. */
  readonly add: (holder: string, count: number) => void;
}

/** Creates the shares. Holders that hold nothing are not kept in memory. */
export function createShares(size: number): Shares {
  let free = size;
  const holders = new Map<string, number>();
  const heldBy = (holder: string) => holders.get(holder) ?? 0;
  return {
    free: () => free,
    heldBy,
    freeFor: holder => (free - heldBy(holder)) / 2,
    add(holder, count) {
      const held = heldBy(holder) + count;
      if (held === 0) holders.delete(holder);
      else holders.set(holder, held);
      free -= count;
    },
  };
}
