import { expect, test } from 'vitest';
import { remedyOfLimit } from './limit-remedy.ts';

test.each([
  [{}, 'Ask the operator of this Sluice to raise streams for this account.'],
  [{ account: 'acc_a' }, 'Ask the operator of this Sluice to raise streams for account acc_a.'],
  [{ most: 5, ceiling: 6 }, 'Ask the operator of this Sluice to raise streams for this account.'],
  [
    { account: 'acc_a', most: 5, ceiling: 5 },
    'The installation does not allow a higher limit (SLUICE_MAX_LIMITS). Only its operator can raise this maximum.',
  ],
])('the remedy of a limit with %j', (facts, remedy) => {
  expect(remedyOfLimit('streams', facts)).toBe(remedy);
});
