import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { DeadlineError, withDeadline } from './deadline.ts';

test('a result in time is returned, and a failure is passed on', async () => {
  const clock = createManualClock();
  expect(await withDeadline(10, async () => 1, clock)).toBe(1);
  const thrown = withDeadline(
    10,
    () => {
      throw new Error('lost');
    },
    clock,
  );
  await expect(thrown).rejects.toThrow('lost');
});

test('a late result is rejected, and the signal is aborted', async () => {
  const clock = createManualClock();
  let signal: AbortSignal | undefined;
  const answer = withDeadline(
    10,
    given => {
      signal = given;
      return new Promise(() => {});
    },
    clock,
  );
  const rejected = expect(answer).rejects.toThrow(DeadlineError);
  await clock.advance(10);
  await rejected;
  expect(signal?.aborted).toBe(true);
});
