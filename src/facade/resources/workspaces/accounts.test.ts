import { expect, test } from 'vitest';
import { tokenBalance } from './accounts.ts';

const id = 'acc_0123456789abcdefghjk';

test('a Free account has a remainder, and a Metered account does not', () => {
  const free = { plan: 'Free', includedTokens: 10, usedTokens: 12, remainingTokens: 0 } as const;
  expect(tokenBalance(id, free)).toEqual({ accountPublicId: id, ...free });
  const metered = { plan: 'Metered', includedTokens: 10, usedTokens: 12 } as const;
  expect(tokenBalance(id, metered)).toEqual({ accountPublicId: id, ...metered, remainingTokens: null });
});

test('a balance does not contain other fields', () => {
  const more = { plan: 'Metered' as const, includedTokens: 0, usedTokens: 0, shortages: [{ queue: 'ten_a:orders' }] };
  expect(JSON.stringify(tokenBalance(id, more))).not.toContain('orders');
});
