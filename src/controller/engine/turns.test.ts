import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createTurns, createWaitingKeys, type Order, tenantOfKey } from './turns.ts';

function takeAll(turns: ReturnType<typeof createTurns>): string[] {
  const taken: string[] = [];
  for (let key = turns.take(); key !== undefined; key = turns.take()) taken.push(key);
  return taken;
}

describe('turns', () => {
  test('takes a key second, even if another tenant has 20,000 keys before it', () => {
    const turns = createTurns();
    for (let n = 0; n < 20_000; n++) turns.add(`acme/ada/${n}`, 'change');
    turns.add('globex/bob/key', 'change');
    expect([turns.take(), turns.take()]).toEqual(['acme/ada/0', 'globex/bob/key']);
  });

  test('gives no additional turns to a tenant that keeps adding keys', () => {
    const turns = createTurns();
    for (const tenant of ['a', 'b', 'c']) for (let n = 0; n < 4; n++) turns.add(`${tenant}/${n}`, 'change');
    const taken: string[] = [];
    for (let n = 0; n < 9; n++) {
      turns.add(`a/more-${n}`, 'change');
      taken.push(tenantOfKey(turns.take() as string));
    }
    expect(taken.join('')).toBe('abcabcabc');
  });

  test('takes the keys of a tenant in order, even if a key in between was removed', () => {
    const turns = createTurns();
    for (const key of ['acme/1', 'acme/2', 'acme/3']) turns.add(key, 'background');
    turns.add('acme/2', 'change');
    expect(takeAll(turns)).toEqual(['acme/2', 'acme/1', 'acme/3']);
  });

  test('takes deletions before changes, and before a change of the same key', () => {
    const turns = createTurns();
    for (const key of ['acme/1', 'acme/2', 'acme/3']) turns.add(key, 'change');
    expect(turns.add('acme/3', 'deletion')).toBe(false);
    expect(turns.add('acme/3', 'background')).toBe(false);
    expect(takeAll(turns)).toEqual(['acme/3', 'acme/1', 'acme/2']);
  });

  test.each([
    ['change', 8],
    ['background', 8],
  ] as const)('gives %s at least one turn in %d while there are always deletions and changes', (order, turnsOfAll) => {
    const turns = createTurns();
    for (let n = 0; n < 100; n++) {
      turns.add(`acme/deletion-${n}`, 'deletion');
      if (order !== 'change') turns.add(`acme/change-${n}`, 'change');
    }
    for (let n = 0; n < 5; n++) turns.add(`globex/${n}`, order);
    const taken = Array.from({ length: 5 * turnsOfAll }, () => turns.take() as string);
    expect(taken.filter(key => key.startsWith('globex/'))).toEqual([0, 1, 2, 3, 4].map(n => `globex/${n}`));
  });

  test('uses the name of a cluster-scoped object as its tenant', () => {
    expect(['acme/orders', 'acme/ada/key/with/slashes', 'acme'].map(tenantOfKey)).toEqual(['acme', 'acme', 'acme']);
  });

  test('returns each key once and counts the waiting keys', () => {
    const order = fc.constantFrom<Order>('deletion', 'change', 'background');
    const step = fc.oneof(
      fc.record({ key: fc.constantFrom('a/1', 'a/2', 'b/1', 'b/2', 'c'), order }),
      fc.constant('take' as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), steps => {
        const turns = createTurns();
        const waiting = new Set<string>();
        for (const each of steps) {
          if (each === 'take') {
            const key = turns.take();
            expect(key === undefined ? waiting.size === 0 : waiting.delete(key)).toBe(true);
          } else {
            expect(turns.add(each.key, each.order)).toBe(!waiting.has(each.key));
            waiting.add(each.key);
          }
          expect(turns.size()).toBe(waiting.size);
          for (const key of ['a/1', 'a/2', 'b/1', 'b/2', 'c']) expect(turns.has(key)).toBe(waiting.has(key));
        }
        expect(takeAll(turns).toSorted()).toEqual([...waiting].toSorted());
      }),
    );
  });

  test('is empty after it was cleared', () => {
    const turns = createTurns();
    turns.add('acme/1', 'change');
    turns.clear();
    expect([turns.size(), turns.take()]).toEqual([0, undefined]);
  });
});

describe('waiting keys', () => {
  test.each([
    [1, 1],
    [2, 1],
    [4, 3],
    [32, 24],
  ])('for %i workers, at most %i process slow keys', async (workers, most) => {
    const clock = createManualClock();
    const waiting = createWaitingKeys({ clock, workers });
    const takeWith = (count: number) =>
      Array.from({ length: count }, () => waiting.take()).filter(key => key !== undefined);
    const keys = Array.from({ length: 40 }, (_, n) => `t${n}/key`);
    for (const key of keys) waiting.add(key, 'change');
    expect(takeWith(40)).toHaveLength(40);
    await clock.advance(1_000);
    for (const key of keys) waiting.done(key);
    for (const key of keys) waiting.add(key, 'change');
    const taken = takeWith(40);
    expect(taken).toHaveLength(most);
    waiting.add('other/key', 'background');
    expect(waiting.take()).toBe('other/key');
    // Keys that were fast this time are treated like all others again, so the same number of slow keys can be taken in
    // addition.
    for (const key of taken) waiting.done(key);
    for (const key of taken) waiting.add(key, 'background');
    takeWith(80);
    expect(waiting.size()).toBe(Math.max(0, 40 - 2 * most));
  });

  test('a key is only slow for one minute', async () => {
    const clock = createManualClock();
    const waiting = createWaitingKeys({ clock, workers: 1 });
    for (const key of ['a/1', 'b/1']) waiting.add(key, 'change');
    for (const key of [waiting.take(), waiting.take()]) {
      await clock.advance(1_000);
      waiting.done(key as string);
    }
    for (const key of ['a/1', 'b/1']) waiting.add(key, 'change');
    expect([waiting.take(), waiting.take()]).toEqual(['a/1', undefined]);
    waiting.clear();
    await clock.advance(60_000);
    waiting.add('b/1', 'change');
    expect(waiting.take()).toBe('b/1');
  });
});
