import { expect, test } from 'vitest';
import { createShares } from './shares.ts';

/** Takes as much as possible for the holder. Nothing is released. */
function fill(shares: ReturnType<typeof createShares>, holder: string): void {
  for (let round = 0; round < 100; round++) shares.add(holder, Math.max(0, Math.floor(shares.freeFor(holder))));
}

test('a holder takes at most as much as it leaves free', () => {
  const shares = createShares(1_200);
  fill(shares, 'a');
  expect([shares.heldBy('a'), shares.free(), shares.freeFor('a')]).toEqual([600, 600, 0]);
  fill(shares, 'b');
  expect([shares.heldBy('b'), shares.free()]).toEqual([300, 300]);
  expect(shares.freeFor('a')).toBeLessThan(0);
  expect(shares.freeFor('c')).toBe(150);
});

test('released shares are available to everybody', () => {
  const shares = createShares(1_200);
  fill(shares, 'a');
  shares.add('a', -600);
  expect([shares.heldBy('a'), shares.free(), shares.freeFor('b')]).toEqual([0, 1_200, 600]);
});
