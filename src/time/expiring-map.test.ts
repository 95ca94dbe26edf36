import { expect, test } from 'vitest';
import { createExpiringMap } from './expiring-map.ts';

test('a value exists for less than its time', () => {
  let now = 0;
  const map = createExpiringMap<string>({ ttlMs: 5_000, entries: 10, nowMs: () => now });
  map.set('a', '1');
  now = 4_999;
  expect(map.get('a')).toBe('1');
  now = 5_000;
  expect(map.get('a')).toBeUndefined();
});

test('removes the oldest entry above the limit, and setting an entry again renews it', () => {
  const map = createExpiringMap<string>({ ttlMs: 5_000, entries: 2, nowMs: () => 0 });
  map.set('a', '1');
  map.set('b', '2');
  map.set('a', '3');
  map.set('c', '4');
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual(['3', undefined, '4']);
});
