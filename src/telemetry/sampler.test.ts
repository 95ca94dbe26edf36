import { expect, test } from 'vitest';
import { createSampler } from './sampler.ts';

test('samples on demand, and not again before the interval has passed', async () => {
  let [now, looks] = [0, 0];
  const look = async () => ++looks;
  const read = createSampler(look, { everyMs: 15_000, monotonicMs: () => now });
  expect(looks).toBe(0);
  expect(await Promise.all([read(), read()])).toEqual([1, 1]);
  now = 14_999;
  expect(await read()).toBe(1);
  now = 15_000;
  expect(await read()).toBe(2);
});

test('a sample that fails or takes too long is unknown until the next sample', async () => {
  let now = 0;
  let answer: () => Promise<number> = () => Promise.reject(new Error('unavailable'));
  const read = createSampler(() => answer(), { everyMs: 10, patienceMs: 20, monotonicMs: () => now });
  expect(await read()).toBeUndefined();
  now = 10;
  answer = () => new Promise(() => {});
  expect(await read()).toBeUndefined();
  now = 20;
  answer = async () => 7;
  expect(await read()).toBe(7);
});
