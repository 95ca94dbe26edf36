/**
 * Creates one lock for each name: any number of shared holders, or one exclusive holder. A waiting exclusive holder
 * goes before later shared ones, so that it does not starve.
 */
export function createSharedLocks() {
  const locks = new Map<
    string,
    { shared: number; exclusive: Promise<void> | undefined; drained: (() => void) | undefined }
  >();

  function of(name: string) {
    let lock = locks.get(name);
    if (lock === undefined) locks.set(name, (lock = { shared: 0, exclusive: undefined, drained: undefined }));
    return lock;
  }

  return {
    shared: async <T>(name: string, run: () => Promise<T>): Promise<T> => {
      const lock = of(name);
      while (lock.exclusive !== undefined) await lock.exclusive;
      lock.shared++;
      try {
        return await run();
      } finally {
        lock.shared--;
        if (lock.shared === 0) lock.drained?.();
      }
    },
    exclusively: async (name: string, run: () => Promise<void>): Promise<void> => {
      const lock = of(name);
      while (lock.exclusive !== undefined) await lock.exclusive;
      const { promise, resolve } = Promise.withResolvers<void>();
      lock.exclusive = promise;
      try {
        if (lock.shared > 0) await new Promise<void>(done => (lock.drained = done));
        lock.drained = undefined;
        await run();
      } finally {
        lock.exclusive = undefined;
        resolve();
      }
    },
  };
}
