import { type Clock, systemClock } from './clock.ts';

/**
 * Thrown if we did not receive a response in time. The operation may still have been performed, so it must be safe to
 * retry.
 */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/**
 * Returns the result of calling `start`. If it takes longer than `timeoutMs`, throws a DeadlineError and aborts the
 * signal that was passed to `start`.
 */
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
