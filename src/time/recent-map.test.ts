import { expect, test } from 'vitest';
import { createRecentMap } from './recent-map.ts';

test('at least the most recent entries are kept, and at most twice as many', () => {
  const map = createRecentMap<number>(3);
  for (let n = 0; n < 1_000; n++) {
    map.set(`${n}`, n);
    expect(map.size()).toBeLessThanOrEqual(6);
    for (let recent = Math.max(0, n - 2); recent <= n; recent++) expect(map.get(`${recent}`)).toBe(recent);
  }
  expect(map.get('0')).toBeUndefined();
});

test('an entry that is used is kept', () => {
  const map = createRecentMap<string>(2);
  map.set('ada', 'stays');
  for (let n = 0; n < 100; n++) {
    map.set(`${n}`, 'goes');
    expect(map.get('ada')).toBe('stays');
  }
});
