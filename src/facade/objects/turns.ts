/**
 * Runs tasks with the same key one after another, in the order of the calls. Different keys do not wait for each
 * other. Concurrent edits of one object would only force each other to retry.
 */
export function createTurns(): <T>(key: string, run: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();

  async function runAfter<T>(before: Promise<unknown> | undefined, run: () => Promise<T>): Promise<T> {
    await before?.catch(() => undefined);
    return run();
  }

  return async (key, run) => {
    const mine = runAfter(last.get(key), run);
    last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (last.get(key) === mine) last.delete(key);
    }
  };
}
