import { expect, test } from 'vitest';
import { createFreshReads } from './fresh-reads.ts';

test('who asks while a read runs gets one that begins after the question, shared by all who wait', async () => {
  const readFresh = createFreshReads<number>();
  const started: (() => void)[] = [];
  let state = 1;
  const read = () =>
    new Promise<number>(resolve => {
      const seen = state;
      started.push(() => resolve(seen));
    });
  const first = readFresh('q', read);
  state = 2;
  const second = readFresh('q', read);
  const third = readFresh('q', read);
  expect(started).toHaveLength(1);
  started[0]?.();
  expect(await first).toBe(1);
  await Promise.resolve();
  expect(started).toHaveLength(2);
  started[1]?.();
  expect(await Promise.all([second, third])).toEqual([2, 2]);
  expect(started).toHaveLength(2);
});

test('a failed read does not fail the one that waits', async () => {
  const readFresh = createFreshReads<number>();
  const first = readFresh('q', () => Promise.reject(new Error('lost')));
  const second = readFresh('q', () => Promise.resolve(2));
  await expect(first).rejects.toThrow('lost');
  expect(await second).toBe(2);
});

test('keys do not wait for each other', async () => {
  const readFresh = createFreshReads<number>();
  void readFresh('slow', () => new Promise(() => {}));
  expect(await readFresh('quick', () => Promise.resolve(1))).toBe(1);
});
