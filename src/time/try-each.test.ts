import { expect, test } from 'vitest';
import { DeadlineError } from './deadline.ts';
import { tryEach } from './try-each.ts';

const never = () => new Promise(() => {});

test('returns the items that failed or were late, after all others have been done', async () => {
  const done: string[] = [];
  const failed = await tryEach(['late', 'broken', 'good', 'slow'], 500, async item => {
    if (item === 'late') await never();
    if (item === 'broken') throw new Error(item);
    if (item === 'slow') await new Promise(resolve => setImmediate(resolve));
    done.push(item);
  });
  expect([failed.toSorted(), done]).toEqual([
    ['broken', 'late'],
    ['good', 'slow'],
  ]);
});

test('throws if all of them failed', async () => {
  await expect(tryEach([1, 2], 10, never)).rejects.toThrow(DeadlineError);
  expect(await tryEach([], 10, never)).toEqual([]);
});
