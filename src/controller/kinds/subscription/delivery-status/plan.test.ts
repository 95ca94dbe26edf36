import { expect, test } from 'vitest';
import type { DeliveryState } from '../../../../core/delivery/delivery-state.ts';
import { differenceOf, NO_DELIVERY, planDelivery } from './plan.ts';

const QUIET: DeliveryState = {
  attempt: undefined,
  dead: 0,
  youngestDeadMs: undefined,
  firstDead: undefined,
  backlog: '0',
};
const AT = { nowMs: 1_000_000, retentionMs: 10_000 };

test('without attempts, the status only shows that there were none', () => {
  expect(planDelivery(QUIET, NO_DELIVERY, AT)).toEqual({ ...NO_DELIVERY });
});

test('another outcome is shown with its time; the same outcome keeps its time', () => {
  const attempt = { outcome: 'HttpError', sinceMs: Date.UTC(2026, 0, 1, 0, 0, 7, 123) } as const;
  const shown = planDelivery({ ...QUIET, attempt }, NO_DELIVERY, AT);
  expect(shown).toMatchObject({ lastAttempt: 'HttpError', lastAttemptSince: '2026-01-01T00:00:07Z' });
  const later = { ...attempt, sinceMs: attempt.sinceMs + 60_000 };
  expect(planDelivery({ ...QUIET, attempt: later }, shown, AT)).toEqual(shown);
});

test('the last attempt in the status is kept if Redis has lost its data', () => {
  const reported = {
    lastAttempt: 'Timeout',
    lastAttemptSince: '2026-01-01T00:00:07Z',
    deadLetters: true,
    backlog: '10+',
  };
  expect(planDelivery(QUIET, reported as never, AT)).toEqual({ ...reported, deadLetters: false, backlog: '0' });
});

test('dead letters are shown until the youngest one has expired', () => {
  const dead = { ...QUIET, dead: 2, youngestDeadMs: AT.nowMs - AT.retentionMs + 1 };
  expect(planDelivery(dead, NO_DELIVERY, AT).deadLetters).toBe(true);
  expect(planDelivery(dead, NO_DELIVERY, { ...AT, nowMs: AT.nowMs + 1 }).deadLetters).toBe(false);
  expect(planDelivery({ ...dead, youngestDeadMs: undefined }, NO_DELIVERY, AT).deadLetters).toBe(true);
  expect(planDelivery({ ...dead, dead: 0 }, NO_DELIVERY, AT).deadLetters).toBe(false);
});

test('orders differences by importance, and ignores times', () => {
  const one = { ...NO_DELIVERY, lastAttempt: 'HttpError', lastAttemptSince: 'a' } as const;
  expect(differenceOf(one, { ...one, lastAttemptSince: 'b' })).toBe('none');
  expect(differenceOf(one, { ...one, backlog: '1+' })).toBe('backlog');
  expect(differenceOf(one, { ...one, backlog: '1+', deadLetters: true })).toBe('outcome');
  expect(differenceOf(one, { ...one, lastAttempt: 'Succeeded' })).toBe('outcome');
});
