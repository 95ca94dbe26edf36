import { expect, test } from 'vitest';
import { quotaOfLimits } from './limit-quota.ts';

test('the quota only contains limits of the account, and none of them exceed the ceiling', () => {
  expect(quotaOfLimits({ streams: 5, packages: 0, integrations: 50, subscriptions: 3 }, { integrations: 20 })).toEqual({
    'count/catalogstreams.sluice.dev': '5',
    'count/packages.sluice.dev': '0',
    'count/integrations.sluice.dev': '20',
    'count/subscriptions.sluice.dev': '3',
  });
  expect(quotaOfLimits(undefined, { streams: 5 })).toEqual({});
});

test('the quota does not contain kinds that can close a route, or limits that do not count objects', () => {
  expect(quotaOfLimits({ activations: 1, blocks: 1, storedBytes: 1, requestsPerMinute: 10 })).toEqual({});
});
