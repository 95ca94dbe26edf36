import { type Clock, systemClock } from './clock.ts';

/** An answer that did not come in time. The work may still be done, so callers must be able to ask again. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/** Returns the promise of `start`, or rejects with a DeadlineError after `timeoutMs`. The signal of `start` aborts then. */
export function withDeadline<T>(
  timeoutMs: number,
  start: (signal: AbortSignal) => Promise<T>,
  clock: Pick<Clock, 'setTimer'> = systemClock,
): Promise<T> {
  const deadline = new AbortController();
  const late = Promise.withResolvers<never>();
  const cancel = clock.setTimer(() => {
    const error = new DeadlineError(`no answer within ${Math.round(timeoutMs)} ms`);
    deadline.abort(error);
    late.reject(error);
  }, timeoutMs);
  return Promise.race([(async () => start(deadline.signal))(), late.promise]).finally(cancel);
}
