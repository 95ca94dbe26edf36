import { expect, test } from 'vitest';
import { type DispositionFacts, dispositionOf, type EventDisposition } from './event-disposition.ts';

const passed: DispositionFacts = {
  id: '10-1',
  groupKey: 'k',
  cursor: '10-2',
  integration: 'active',
  activatedSinceMs: 0,
  nowMs: 20,
  subscription: { behindAt: undefined },
  progress: undefined,
  noted: undefined,
};
const progress = { state: 'delivered', attempts: 1, history: [] } as const;

test.each<[string, Partial<DispositionFacts>, EventDisposition]>([
  ['it is in the inbox', { progress }, { disposition: 'routed', progress }],
  [
    'it is there, and the integration is revoked since',
    { progress, integration: 'closed' },
    { disposition: 'routed', progress },
  ],
  [
    'it was in an inbox that was removed',
    { wasRouted: true, noted: 'not_activated', subscription: undefined },
    { disposition: 'routed' },
  ],
  ['routing noted why not', { noted: 'not_activated' }, { disposition: 'not_routed', reason: 'not_activated' }],
  ['it has no group key', { groupKey: '' }, { disposition: 'not_routed', reason: 'missing_group_key' }],
  ['routing has not come there', { cursor: '10-0' }, { disposition: 'waiting' }],
  ['the very event was the last one', { cursor: '10-1' }, { disposition: 'not_routed', reason: 'not_subscribed' }],
  [
    'it is too late for its key, long behind',
    { subscription: { behindAt: '9-9' }, activatedSinceMs: undefined, nowMs: 10_011 },
    { disposition: 'not_routed', reason: 'not_activated' },
  ],
  [
    'its key became active later',
    { cursor: '10-0', activatedSinceMs: 2_011, nowMs: 10_011 },
    { disposition: 'not_routed', reason: 'not_activated' },
  ],
  ['that was about then', { cursor: '10-0', activatedSinceMs: 2_010, nowMs: 10_011 }, { disposition: 'waiting' }],
  [
    'its key may become active in time',
    { cursor: '10-0', activatedSinceMs: undefined, nowMs: 10_010 },
    { disposition: 'waiting' },
  ],
  ['the subscription is behind', { subscription: { behindAt: '9-9' } }, { disposition: 'waiting' }],
  [
    'the subscription is behind, elsewhere',
    { subscription: { behindAt: '11-0' } },
    { disposition: 'not_routed', reason: 'not_subscribed' },
  ],
  ['no subscription', { subscription: undefined }, { disposition: 'not_routed', reason: 'not_subscribed' }],
  ['it may be subscribed to yet', { subscription: undefined, cursor: '1-0' }, { disposition: 'waiting' }],
  [
    'the invitation is open',
    { subscription: undefined, integration: 'pending' },
    { disposition: 'not_routed', reason: 'integration_pending' },
  ],
  [
    'the integration is closed',
    { subscription: undefined, integration: 'closed' },
    { disposition: 'not_routed', reason: 'integration_closed' },
  ],
])('%s', (_what, facts, expected) => {
  expect(dispositionOf({ ...passed, ...facts })).toEqual(expected);
});
