import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cursorOf } from '../../core/ids/list-cursor.ts';
import { Refusal } from '../../http/refusal.ts';
import { PageQuery, paginate, positionOf } from './page.ts';

const keyOf = (item: string) => item;
const LIST = ['letters', 'shop'] as const;

test('pages contain each item once, in order, for any page size', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ minLength: 1 })), fc.integer({ min: 1, max: 7 }), (items, limit) => {
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = paginate(LIST, items, keyOf, { limit, cursor });
        expect(page.data.length).toBeLessThanOrEqual(limit);
        seen.push(...page.data);
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      expect(seen).toEqual(items.toSorted((a, b) => (a < b ? -1 : 1)));
    }),
  );
});

test('changes between two pages do not move other items', () => {
  const first = paginate(LIST, ['b', 'c', 'd', 'e'], keyOf, { limit: 2 });
  expect(first.data).toEqual(['b', 'c']);
  const second = paginate(LIST, ['a', 'd', 'e'], keyOf, { limit: 2, cursor: first.nextCursor ?? '' });
  expect(second).toEqual({ data: ['d', 'e'], nextCursor: null });
});

test.each(['', '!', 'not base64url', 'Zg==', '_w'])('%j is not a cursor', text => {
  for (const cursor of [text, cursorOf(LIST, text) ?? '']) {
    expect(() => paginate(LIST, ['a'], keyOf, { cursor })).toThrow(Refusal);
  }
});

test('a cursor is only accepted by its own list', () => {
  const cursor = paginate(LIST, ['a', 'b'], keyOf, { limit: 1 }).nextCursor ?? '';
  expect(paginate(LIST, ['a', 'b'], keyOf, { cursor }).data).toEqual(['b']);
  const others = [['letters', 'other'], ['letters', undefined, 'shop'], ['letters'], ['numbers', 'shop']] as const;
  for (const other of others) expect(() => paginate(other, ['a', 'b'], keyOf, { cursor })).toThrow(Refusal);
  expect([positionOf(LIST, undefined), cursorOf(LIST, undefined)]).toEqual([undefined, null]);
});

test.each(['0', '251', '-1', '1.5', 'ten', '', '0x10', '1e2'])('limit=%s is refused', limit => {
  expect(PageQuery.safeParse({ limit }).success).toBe(false);
});

test('the default limit is 50 items', () => {
  const many = Array.from({ length: 60 }, (_, i) => `${i}`.padStart(2, '0'));
  expect(paginate(LIST, many, keyOf, {}).data).toHaveLength(50);
});

test('a page of large items ends at 1 MiB, has at least one item, and has a next page', () => {
  const items = Array.from({ length: 10 }, (_, n) => ({
    key: `${n}`,
    text: 'x'.repeat(n === 9 ? 2_000_000 : 400_000),
  }));
  const seen: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = paginate(
      LIST,
      items,
      ({ key }) => key,
      { limit: 250, cursor },
      { bytesOf: item => JSON.stringify(item).length },
    );
    seen.push(page.data.map(({ key }) => key));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  expect(seen).toEqual([['0', '1'], ['2', '3'], ['4', '5'], ['6', '7'], ['8'], ['9']]);
});
