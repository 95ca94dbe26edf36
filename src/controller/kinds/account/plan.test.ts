import { expect, test } from 'vitest';
import type { LimitLevels } from '../../../core/limits/limit-levels.ts';
import { planAccount } from './plan.ts';

const NONE: LimitLevels = { reached: [], near: [] };

const limitReached = (levels: LimitLevels, hadLimitReached = false) =>
  planAccount({ name: 'acme', limits: {}, levels, hadLimitReached })
    .conditions.filter(({ type }) => type === 'LimitReached')
    .map(({ status, reason, message }) => `${status} ${reason}: ${message}`);

test('an account that has never been near a limit does not have the condition', () => {
  expect(limitReached(NONE)).toEqual([]);
  expect(planAccount({ name: 'acme', limits: {}, levels: NONE, hadLimitReached: false }).conditions).toEqual([
    expect.objectContaining({ type: 'Ready', status: 'True', reason: 'LedgerReady' }),
  ]);
});

test('the message contains limits that are reached or near, and what to change', () => {
  expect(limitReached({ reached: ['streams', 'blocks'], near: ['packages'] })).toEqual([
    'True AtLimit: the account has reached its limits of streams, blocks. To create more objects, delete some or raise spec.limits; the account is near its limits of packages',
  ]);
});

test('a limit that is near is not reported as reached', () => {
  expect(limitReached({ reached: [], near: ['packages'] })).toEqual([
    'False NearLimit: the account is near its limits of packages',
  ]);
});

test('an account that has been near a limit keeps the condition', () => {
  expect(limitReached(NONE, true)).toEqual(['False WithinLimits: the account is within its limits']);
});

test('the status contains the limits in force', () => {
  const limits = { streams: 5, requestsPerMinute: 100 };
  expect(planAccount({ name: 'acme', limits, levels: NONE, hadLimitReached: false }).status?.limits).toEqual(limits);
});
