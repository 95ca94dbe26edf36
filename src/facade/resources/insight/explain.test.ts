import { expect, test } from 'vitest';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { shortage } from './explain.ts';

const tenant = { publicId: 'ten_a', workspace: { spec: { account: 'shop', owners: [] } } } as unknown as OwnedTenant;

/** The shortage of a stream. The balance contains 5 of 10 tokens, even if the account does not exist. */
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
