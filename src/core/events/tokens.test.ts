import { describe, expect, test } from 'vitest';
import { type Balance, isShort, tokensOf } from './tokens.ts';

test.each([
  [0, 1],
  [1, 1],
  [16_384, 1],
  [16_385, 2],
  [32_768, 2],
  [32_769, 3],
  [262_144, 16],
])('%d bytes cost %d tokens', (bytes, tokens) => expect(tokensOf(bytes)).toBe(tokens));

describe('isShort', () => {
  const NOW_MS = 1_000_000;
  const free = (used: number): Balance => ({ plan: 'Free', includedTokens: 10, usedTokens: used });
  const waits = (tokens: number, agoMs = 0) => [{ queue: 'ten_1:orders', tokens, atMs: NOW_MS - agoMs }];
  test.each<[string, Balance, ReturnType<typeof waits>, boolean]>([
    ['nothing waits', free(10), [], false],
    ['its next event costs more than there is', free(8), waits(3), true],
    ['it was topped up in the meantime', free(7), waits(3), false],
    ['the queue has not asked again: the event expired', free(8), waits(3, 90_000), false],
    ['nothing is left at all', free(10), waits(1, 90_000), true],
    ['a plan that only counts', { ...free(20), plan: 'Metered' }, waits(1), false],
    ['the account was not known then', free(10), waits(0), false],
  ])('%s', (_name, balance, waiting, expected) => expect(isShort(balance, waiting, NOW_MS)).toBe(expected));
});
