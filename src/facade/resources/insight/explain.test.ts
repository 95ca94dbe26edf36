import { expect, test } from 'vitest';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { factsInForce, shortage, shortageOf } from './explain.ts';

const tenant = { publicId: 'ten_a', workspace: { spec: { account: 'shop', owners: [] } } } as unknown as OwnedTenant;

/** A stream's shortage. The balance contains 5 of 10 tokens, even if the account does not exist. */
const shortageWith = (account: object | undefined) =>
  shortage(
    {
      caches: { get: () => account },
      readBalance: async () => ({
        plan: 'Free',
        includedTokens: 10,
        usedTokens: 5,
        remainingTokens: 5,
        shortages: [],
      }),
    } as unknown as Facade,
    tenant,
    'orders',
  );

test('an account that does not exist has no tokens, even if Redis contains its balance', async () => {
  expect(await shortageWith({})).toBeUndefined();
  expect(await shortageWith(undefined)).toBe('insufficient_tokens');
});

test.each<[remainingTokens: number | undefined, queue: string, tokens: number, expected: string | undefined]>([
  [5, 'ten_a:orders', 6, 'insufficient_tokens'],
  [5, 'ten_a:orders', 5, undefined],
  [5, 'ten_a:carts', 6, undefined],
  [0, 'ten_a:carts', 1, 'insufficient_tokens'],
  [undefined, 'ten_a:orders', 6, undefined],
])(
  'with %j tokens, and an event of %s that costs %i, the shortage of ten_a:orders is %s',
  (left, queue, tokens, is) => {
    const balance = { plan: left === undefined ? 'Metered' : 'Free', includedTokens: 10, usedTokens: 5 } as const;
    const remaining = left === undefined ? {} : { remainingTokens: left };
    expect(shortageOf({ ...balance, ...remaining, shortages: [{ queue, tokens, atMs: 0 }] }, 'ten_a:orders')).toBe(is);
    expect(shortageOf(undefined, 'ten_a:orders')).toBe('state_missing');
  },
);

test('a stream, an integration, or a subscription whose state is missing in Redis does not look like a decision', () => {
  const known = { integration: 'active', activated: true, subscription: 'open' } as const;
  const subscriptionOf = (reading: object, state: 'open' | 'missing' = 'open') =>
    factsInForce({ ...known, ...reading } as Parameters<typeof factsInForce>[0], { state }, 'k', undefined)
      .subscription;
  expect(subscriptionOf({})).toBe('open');
  expect(subscriptionOf({}, 'missing')).toBe('state_missing');
  expect(subscriptionOf({ integration: 'missing' })).toBe('state_missing');
  expect(subscriptionOf({ subscription: 'missing' })).toBe('state_missing');
});
