import { expect, test } from 'vitest';
import { nearestName } from './nearest-name.ts';

const KNOWN = ['SLUICE_LOG_LEVEL', 'SLUICE_OPS_PORT', 'SLUICE_FACADE_PORT'];

test.each([
  ['SLUICE_LOGLEVEL', 'SLUICE_LOG_LEVEL'],
  ['SLUICE_OPS_PROT', 'SLUICE_OPS_PORT'],
  ['SLUICE_FACADE_PORTS', 'SLUICE_FACADE_PORT'],
  ['SLUICE_REDIS_URL', undefined],
  ['', undefined],
])('for %s, the suggestion is %s', (name, meant) => {
  expect(nearestName(name, KNOWN)).toBe(meant);
});

// Three letters of `foo` and `wait` differ from `all` and `limit`, but no reader would confuse them.
test.each([
  ['foo', undefined],
  ['wait', 'waitSeconds'],
  ['lim', 'limit'],
  ['subs', 'subscription'],
  ['w', undefined],
  ['Limit', 'limit'],
  ['al', 'all'],
])('for %s, the suggestion of a short name is %s', (name, meant) => {
  expect(nearestName(name, ['subscription', 'limit', 'all', 'waitSeconds'])).toBe(meant);
});

test('does not choose between two names with the same beginning', () => {
  expect(nearestName('SLUICE_', KNOWN)).toBeUndefined();
});

test('does not compare a name that is much longer than all others', () => {
  const letters = new Proxy(Object('x'.repeat(10_000)) as object, {
    get(target, key) {
      if (key === '0') throw new Error('compared');
      return Reflect.get(target, key) as unknown;
    },
  });
  expect(nearestName(letters as unknown as string, KNOWN)).toBeUndefined();
});
