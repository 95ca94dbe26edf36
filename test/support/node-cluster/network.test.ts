import { expect, test } from 'vitest';
import { isFree, NUMBERS, nameOf } from './network.ts';

test.each([
  { routes: ['default', '192.168.0.0/16', '127.0.0.1'], free: true },
  { routes: ['10.200.0.0/30'], free: false },
  { routes: ['10.200.7.1'], free: false },
  { routes: ['10.200.0.0/16'], free: false },
  { routes: ['10.192.0.0/12'], free: false },
  { routes: ['10.201.0.0/16', '10.208.0.0/12', '11.200.0.0/16'], free: true },
  { routes: ['10.0.0.0/8'], free: true },
])('with the routes $routes, 10.200.0.0/16 is free: $free', ({ routes, free }) => {
  expect(isFree(200, routes)).toBe(free);
});

test('a name has at most 15 characters, as required for an interface', () => {
  expect(Math.max(...NUMBERS.map(number => nameOf(number).length))).toBe(15);
});
