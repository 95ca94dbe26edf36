import { type Clock, systemClock } from './clock.ts';

/**
 * Thrown if there was no response in time. The operation may still have been performed, which means that it must be
 * safe to retry.
 */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/** Returns the result of `start`. After `timeoutMs`, throws a DeadlineError and aborts the signal passed to `start`. */
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
