import { expect, test } from 'vitest';
import { createTurns } from './turns.ts';

test('the same key waits its turn, in order, also after a failure; another key does not wait', async () => {
  const turns = createTurns();
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = turns('a', async () => {
    seen.push('first begins');
    await gate.promise;
    seen.push('first ends');
    throw new Error('first failed');
  });
  const second = turns('a', async () => seen.push('second'));
  const third = turns('a', async () => seen.push('third'));
  await turns('b', async () => seen.push('other'));
  expect(seen).toEqual(['first begins', 'other']);
  gate.resolve();
  await expect(first).rejects.toThrow('first failed');
  await Promise.all([second, third]);
  expect(seen).toEqual(['first begins', 'other', 'first ends', 'second', 'third']);
});

test('what is over is forgotten: the next one runs at once', async () => {
  const turns = createTurns();
  await turns('a', async () => 1);
  expect(await turns('a', async () => 2)).toBe(2);
});
