import { expect, test } from 'vitest';
import { runFewAtOnce } from './few-at-once.ts';

test('calls for the next item when one of the others has ended', async () => {
  const calls: { item: number; end: () => void }[] = [];
  const done = runFewAtOnce(new Set([1, 2, 3, 4]), 2, item => {
    const { promise, resolve } = Promise.withResolvers<void>();
    calls.push({ item, end: resolve });
    return promise;
  });
  const begun = async () => {
    await new Promise(setImmediate);
    return calls.map(({ item }) => item);
  };
  expect(await begun()).toEqual([1, 2]);
  calls[1]?.end();
  expect(await begun()).toEqual([1, 2, 3]);
  for (const { end } of calls) end();
  expect(await begun()).toEqual([1, 2, 3, 4]);
  calls[3]?.end();
  await done;
});

test('rejects with the first error, and calls for the remaining items all the same', async () => {
  const calls: number[] = [];
  const done = runFewAtOnce([1, 2, 3, 4, 5], 2, async item => {
    calls.push(item);
    if (item === 2) throw new Error('two');
  });
  await expect(done).rejects.toThrow('two');
  await new Promise(setImmediate);
  expect(calls).toEqual([1, 2, 3, 4, 5]);
});

test('resolves without items', async () => {
  await expect(runFewAtOnce([], 2, () => Promise.reject(new Error('called')))).resolves.toBeUndefined();
});
