interface Lock {
  /** The last exclusive holder. This may be a holder that is still waiting. */
  exclusive: Promise<unknown> | undefined;
  /** All shared holders, including the ones that are still waiting. */
  readonly shared: Set<Promise<unknown>>;
}

/**
 * Creates a set of locks by key. A lock can have any number of shared holders or one exclusive holder, and is granted
 * in the order of the calls. An exclusive holder that is waiting therefore cannot be starved by later shared holders.
 * Locks with different keys are independent.
 */
export function createLocks() {
  const locks = new Map<string, Lock>();

  async function runAfter<T>(before: readonly Promise<unknown>[], run: () => Promise<T>): Promise<T> {
    await Promise.allSettled(before);
    return run();
  }

  function hold<T>(key: string, isExclusive: boolean, run: () => Promise<T>): Promise<T> {
    const lock: Lock = locks.get(key) ?? { exclusive: undefined, shared: new Set() };
    locks.set(key, lock);
    const before = [lock.exclusive, ...(isExclusive ? lock.shared : [])].filter(each => each !== undefined);
    const held = runAfter(before, run).finally(() => {
      lock.shared.delete(held);
      if (lock.exclusive === held) lock.exclusive = undefined;
      if (lock.exclusive === undefined && lock.shared.size === 0) locks.delete(key);
    });
    if (isExclusive) lock.exclusive = held;
    else lock.shared.add(held);
    return held;
  }

  return {
    shared: <T>(key: string, run: () => Promise<T>) => hold(key, false, run),
    exclusively: <T>(key: string, run: () => Promise<T>) => hold(key, true, run),
  };
}
