interface Lock {
  /** Last exclusive holder, which might still be waiting. */
  exclusive: Promise<unknown> | undefined;
  /** All shared holders, including any that are still waiting. */
  readonly shared: Set<Promise<unknown>>;
}

/**
 * Creates a set of locks by key. A lock has either one exclusive holder or any number of shared ones, and is granted in
 * the order of the calls. This means that later shared holders can't starve an exclusive holder that is already
 * waiting. Different keys are independent of each other.
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
