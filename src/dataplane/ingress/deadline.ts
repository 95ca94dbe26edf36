/** What did not answer in time. The work itself may still be done: callers must be able to ask again. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/** The promise of `start()`, or a DeadlineError after `timeoutMs`. What `start` throws becomes a rejection too. */
export function withDeadline<T>(timeoutMs: number, start: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(new DeadlineError(`no answer within ${timeoutMs} ms`)), timeoutMs);
    const settle = (finish: () => void) => {
      clearTimeout(timer);
      finish();
    };
    (async () => start())().then(
      value => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error instanceof Error ? error : new Error(String(error)))),
    );
  });
}
