import { expect, test } from 'vitest';
import { createSingleFlight } from './single-flight.ts';

test('calls during a run share a run that starts afterwards', async () => {
  const fly = createSingleFlight<number>();
  const started: (() => void)[] = [];
  let state = 1;
  const read = () =>
    new Promise<number>(resolve => {
      const seen = state;
      started.push(() => resolve(seen));
    });
  const first = fly('q', read);
  state = 2;
  const second = fly('q', read);
  const third = fly('q', read);
  expect(started).toHaveLength(1);
  started[0]?.();
  expect(await first).toBe(1);
  await Promise.resolve();
  expect(started).toHaveLength(2);
  started[1]?.();
  expect(await Promise.all([second, third])).toEqual([2, 2]);
  expect(started).toHaveLength(2);
});

test('a call at the end of a run does not run concurrently with a waiting run', async () => {
  const fly = createSingleFlight<void>();
  let running = 0;
  let most = 0;
  const run = async () => {
    most = Math.max(most, ++running);
    await new Promise(resolve => setImmediate(resolve));
    running--;
  };
  const first = fly('q', async () => {
    await run();
    for (let step = Promise.resolve(), i = 0; i < 10; i++) step = step.then(() => void fly('q', run));
  });
  const second = fly('q', run);
  await Promise.all([first, second]);
  expect(most).toBe(1);
});

test('a failure does not fail the waiting run', async () => {
  const fly = createSingleFlight<number>();
  const first = fly('q', () => Promise.reject(new Error('lost')));
  const second = fly('q', () => Promise.resolve(2));
  await expect(first).rejects.toThrow('lost');
  expect(await second).toBe(2);
});

test('keys do not wait for each other', async () => {
  const fly = createSingleFlight<number>();
  void fly('slow', () => new Promise(() => {}));
  expect(await fly('quick', () => Promise.resolve(1))).toBe(1);
});
