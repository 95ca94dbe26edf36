interface Lock {
  /** The last exclusive holder. This holder might still be waiting for the lock. */
  exclusive: Promise<unknown> | undefined;
  /** All shared holders, including callers still waiting for the lock. */
  readonly shared: Set<Promise<unknown>>;
}

/**
 * Creates a set of locks by key. A lock can have either a single exclusive holder or any number of shared holders.
 * Locks are granted in the order in which they were requested, so later shared holders can't starve an exclusive holder
 * that is already waiting. Locks for different keys are independent.
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
