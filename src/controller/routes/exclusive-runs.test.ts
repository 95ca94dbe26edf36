import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createExclusiveRuns } from './exclusive-runs.ts';

test('all changes before a run starts share this run', async () => {
  const runs = createExclusiveRuns(createManualClock());
  let count = 0;
  const work = async () => void count++;
  const joined: Promise<void>[] = [];
  // A chunk of a watch is processed in one turn of the event loop.
  for (let i = 0; i < 300; i++) {
    joined.push(runs.join(work));
    await Promise.resolve();
  }
  expect([count, runs.isRunning()]).toEqual([0, true]);
  await Promise.all(joined);
  expect([count, runs.isRunning()]).toEqual([1, false]);
});

test('a change during a run starts another run after a pause', async () => {
  const clock = createManualClock();
  const runs = createExclusiveRuns(clock);
  const first = Promise.withResolvers<void>();
  let begun = 0;
  const work = () => (++begun === 1 ? first.promise : Promise.resolve());
  const one = runs.join(work);
  await clock.advance(40);
  const [two, three] = [runs.join(work), runs.join(work)];
  expect([begun, two === three]).toEqual([1, true]);
  first.resolve();
  await one;
  await clock.advance(39);
  expect(begun).toBe(1);
  await clock.advance(1);
  await two;
  expect(begun).toBe(2);
});

test('changes that arrive all the time do not delay a single run', async () => {
  const runs = createExclusiveRuns(createManualClock());
  const story: string[] = [];
  const work = async () => {
    story.push('shared');
    if (story.length < 20) void runs.join(work);
  };
  void runs.join(work);
  await runs.alone(async () => void story.push('alone'));
  expect(story).toEqual(['shared', 'alone']);
});

test('a run that fails only fails for its callers', async () => {
  const clock = createManualClock();
  const runs = createExclusiveRuns(clock);
  const fail = () => Promise.reject(new Error('unavailable'));
  const results = await Promise.allSettled([runs.join(fail), runs.join(fail), runs.alone(async () => {})]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
});
