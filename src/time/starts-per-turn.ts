/**
 * StartsPerTurn limits the number of works that an owner starts in a single turn of the event loop. The works of other
 * owners never wait for them.
 */
export interface StartsPerTurn {
  /** Returns undefined if the owner may start at once, or otherwise, waits for the turn in which it may start. */
  readonly take: (owner: string) => Promise<void> | undefined;
}

/** @param most the maximum number of starts of an owner in a turn */
export function createStartsPerTurn(
  most: number,
  nextTurn: (run: () => void) => void = run => void setImmediate(run),
): StartsPerTurn {
  /** The number of starts in this turn, by owner. */
  let started = new Map<string, number>();
  /** The works that wait for a later turn, by owner. */
  const waiting = new Map<string, (() => void)[]>();

  function begin(): void {
    started = new Map();
    for (const [owner, starts] of waiting) {
      const due = starts.splice(0, most);
      if (starts.length === 0) waiting.delete(owner);
      count(owner, due.length);
      for (const start of due) start();
    }
  }

  function count(owner: string, starts: number): void {
    if (started.size === 0) nextTurn(begin);
    started.set(owner, (started.get(owner) ?? 0) + starts);
  }

  return {
    take(owner) {
      const queue = waiting.get(owner);
      if (queue === undefined && (started.get(owner) ?? 0) < most) {
        count(owner, 1);
        return undefined;
      }
      return new Promise(resolve => {
        if (queue === undefined) waiting.set(owner, [resolve]);
        else queue.push(resolve);
      });
    },
  };
}
