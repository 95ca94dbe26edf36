import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { DeadlineError, withDeadline } from './deadline.ts';

test('an answer in time is returned, and a failure is the failure of the start', async () => {
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

test('a late answer rejects, and the signal of the start aborts', async () => {
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
