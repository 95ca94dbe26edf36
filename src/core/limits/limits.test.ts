import { expect, test } from 'vitest';
import { LIMIT_NAMES } from '../../api/kinds/account-limits.ts';
import { DEFAULT_LIMITS, DEFAULT_POLICY, type LimitPolicy, limitsOf } from './limits.ts';

const policy: LimitPolicy = {
  byPlan: { Free: { streams: 10, blocks: 7 }, Metered: { streams: 1_000, packages: 500 } },
  ceilings: { streams: 600, activations: 5_000 },
};

test('an account has the defaults of its plan', () => {
  expect(limitsOf({ plan: 'Free' }, policy)).toEqual({ streams: 10, blocks: 7, activations: 5_000 });
});

test('limits of the account take precedence, even if they are 0', () => {
  expect(limitsOf({ plan: 'Free', limits: { streams: 20, blocks: 0 } }, policy)).toEqual({
    streams: 20,
    blocks: 0,
    activations: 5_000,
  });
});

test('no limit exceeds the ceiling of the installation', () => {
  const limits = { streams: 900, activations: 6_000 };
  expect(limitsOf({ plan: 'Metered' }, policy)).toMatchObject({ streams: 600, packages: 500 });
  expect(limitsOf({ plan: 'Metered', limits }, policy)).toMatchObject({ streams: 600, activations: 5_000 });
});

test('a plan without limits leaves the account unlimited', () => {
  const open: LimitPolicy = { byPlan: { Free: {}, Metered: {} }, ceilings: {} };
  expect(limitsOf({ plan: 'Metered' }, open)).toEqual({});
});

test('the shipped defaults contain all limits for the Free plan', () => {
  expect(Object.keys(DEFAULT_LIMITS.Free).toSorted()).toEqual(LIMIT_NAMES.toSorted());
});

test('the shipped defaults are sufficient for the largest tenant that is tested', () => {
  const {
    activations = 0,
    subscriptions = 0,
    integrations = 0,
    streams = 0,
  } = limitsOf({ plan: 'Metered' }, DEFAULT_POLICY);
  expect(activations).toBeGreaterThan(100_000);
  expect(subscriptions).toBeGreaterThan(10_000);
  expect(integrations).toBeGreaterThan(10_000);
  expect(streams).toBeGreaterThan(1_000);
});
