import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Balance, coveredBy, isShort, tokensOf } from './tokens.ts';

test.each([
  [0, 1],
  [1, 1],
  [16_384, 1],
  [16_385, 2],
  [32_768, 2],
  [32_769, 3],
  [262_144, 16],
])('%d bytes cost %d', (bytes, tokens) => expect(tokensOf(bytes)).toBe(tokens));

describe('coveredBy', () => {
  test('stops at the first that is not wholly covered; what is free goes', () => {
    expect(coveredBy([2, 0, 3, 1], 4)).toBe(2);
    expect(coveredBy([2, 0, 3, 1], 5)).toBe(3);
    expect(coveredBy([2, 0, 3, 1], 6)).toBe(4);
    expect(coveredBy([0, 0, 1], 0)).toBe(2);
    expect(coveredBy([], 0)).toBe(0);
  });

  test('is the longest beginning that the tokens pay for', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(16)), fc.nat(100), (costs, tokens) => {
        const count = coveredBy(costs, tokens);
        const sum = (n: number) => costs.slice(0, n).reduce((a, b) => a + b, 0);
        expect(sum(count)).toBeLessThanOrEqual(tokens);
        if (count < costs.length) expect(sum(count + 1)).toBeGreaterThan(tokens);
      }),
    );
  });
});

describe('isShort', () => {
  const NOW_MS = 1_000_000;
  const free = (used: number): Balance => ({ plan: 'Free', includedTokens: 10, usedTokens: used });
  const waits = (tokens: number, agoMs = 0) => [{ queue: 'ten_1:orders', tokens, atMs: NOW_MS - agoMs }];
  test.each<[string, Balance, ReturnType<typeof waits>, boolean]>([
    ['nothing waits', free(10), [], false],
    ['its next event costs more than there is', free(8), waits(3), true],
    ['it was topped up meanwhile', free(7), waits(3), false],
    ['the router has not asked again: the event expired', free(8), waits(3, 90_000), false],
    ['nothing is left at all', free(10), waits(1, 90_000), true],
    ['a plan that only counts', { ...free(20), plan: 'Metered' }, waits(1), false],
    ['the account was not known then', free(10), waits(0), false],
  ])('%s', (_name, balance, waiting, expected) => expect(isShort(balance, waiting, NOW_MS)).toBe(expected));
});
