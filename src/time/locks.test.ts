import { expect, test } from 'vitest';
import { createLocks } from './locks.ts';

test('callers with the same key wait in order, even after a failure; other keys do not wait', async () => {
  const locks = createLocks();
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = locks.exclusively('a', async () => {
    seen.push('first begins');
    await gate.promise;
    seen.push('first ends');
    throw new Error('first failed');
  });
  const second = locks.exclusively('a', async () => seen.push('second'));
  const third = locks.exclusively('a', async () => seen.push('third'));
  await locks.exclusively('b', async () => seen.push('other'));
  expect(seen).toEqual(['first begins', 'other']);
  gate.resolve();
  await expect(first).rejects.toThrow('first failed');
  await Promise.all([second, third]);
  expect(seen).toEqual(['first begins', 'other', 'first ends', 'second', 'third']);
});

test('removes released locks, so that the next caller runs immediately', async () => {
  const locks = createLocks();
  await locks.exclusively('a', async () => 1);
  expect(await locks.exclusively('a', async () => 2)).toBe(2);
});

test('shared holders run concurrently, an exclusive holder runs alone, and later shared holders wait for it', async () => {
  const locks = createLocks();
  const seen: string[] = [];
  const gates = { one: Promise.withResolvers<void>(), two: Promise.withResolvers<void>() };
  const holding = (name: string, until?: Promise<void>) => async () => {
    seen.push(`${name} begins`);
    await until;
    seen.push(`${name} ends`);
  };
  const one = locks.shared('a', holding('one', gates.one.promise));
  const two = locks.shared('a', holding('two', gates.two.promise));
  const alone = locks.exclusively('a', holding('alone'));
  const late = locks.shared('a', holding('late'));
  await locks.exclusively('b', async () => seen.push('other'));
  gates.one.resolve();
  await one;
  expect(seen).toEqual(['one begins', 'two begins', 'other', 'one ends']);
  gates.two.resolve();
  await Promise.all([two, alone, late]);
  expect(seen.slice(4)).toEqual(['two ends', 'alone begins', 'alone ends', 'late begins', 'late ends']);
});

test('a failure only fails its own caller', async () => {
  const locks = createLocks();
  const failing = locks.shared('a', () => Promise.reject(new Error('lost')));
  const after = locks.exclusively('a', async () => 1);
  await expect(failing).rejects.toThrow('lost');
  expect(await after).toBe(1);
});
