import { expect, test, vi } from 'vitest';
import type { SweepAnswer } from '../../part/sweep/sweep.ts';
import { createUpkeep } from './upkeep.ts';

const never = () => new Promise<never>(() => {});

test('reports clocks that differ, and checks them again', async () => {
  const failures: string[] = [];
  const answers: SweepAnswer[] = [
    { answer: 'CLOCK', offsetMs: 8 * 24 * 3_600_000 },
    { answer: 'OK', more: false, dueInMs: undefined, events: 1, expired: 1, neverRouted: 0 },
  ];
  const expired: number[] = [];
  const upkeep = createUpkeep(
    {
      sweep: async () => answers.shift() as SweepAnswer,
      tokens: { settle: never },
      traffic: { fold: never },
      noteStored: never,
      nowMs: Date.now,
      alarm: () => {},
      onExpired: swept => expired.push(swept.expired),
      onFailure: (error, what) => failures.push(`${what}: ${(error as Error).message}`),
      times: { clockMs: 1 },
    },
    { tenant: 'ten_a', queue: 'orders', gen: 'g', number: 0 },
  );
  upkeep.start();
  await vi.waitFor(() => expect(expired).toEqual([1]));
  expect(failures).toEqual([
    'part could not be swept: the Redis clock differs from the clock of this machine by 192 hours, so no expired events are removed. Correct the clocks',
  ]);
});
