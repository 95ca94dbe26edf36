/**
 * Reads by key, one at a time for each key. Who asks while a read runs shares the one after it, never the running one:
 * that may have looked before a change that the asker already knows of. So an answer is never older than the question,
 * and however many ask, a key has at most one read running and one waiting.
 */
export function createFreshReads<T>(): (key: string, read: () => Promise<T>) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  const waiting = new Map<string, Promise<T>>();

  function start(key: string, read: () => Promise<T>): Promise<T> {
    const promise = read().finally(() => {
      if (running.get(key) === promise) running.delete(key);
    });
    running.set(key, promise);
    return promise;
  }

  return function readFresh(key, read) {
    const current = running.get(key);
    if (current === undefined) return start(key, read);
    const queued = waiting.get(key);
    if (queued !== undefined) return queued;
    const next = current.then(
      () => follow(),
      () => follow(),
    );
    function follow(): Promise<T> {
      waiting.delete(key);
      return start(key, read);
    }
    waiting.set(key, next);
    return next;
  };
}
