import { expect, test } from 'vitest';
import { type EventProgress, parseEventProgress } from './event-state.ts';

const FAILED = { atMs: 5, result: '500', latencyMs: 12 };

test.each<[string, EventProgress]>([
  ['pending 0 0 0', { state: 'pending', attempts: 0, history: [] }],
  ['inflight 1 0 9 5,500,12', { state: 'inflight', attempts: 1, history: [FAILED] }],
  ['retrying 1 2 9 5,500,12', { state: 'retrying', attempts: 1, history: [FAILED], dueMs: 9 }],
  ['retrying 1 0 0 5,500,12', { state: 'retrying', attempts: 1, history: [FAILED] }],
  [
    'delivered 8 2 204 3 5,500,12',
    {
      state: 'delivered',
      attempts: 2,
      history: [FAILED, { atMs: 8, result: '204', latencyMs: 3 }],
      endedMs: 8,
      reason: '204',
    },
  ],
  [
    'dead 8 1 timeout 15000',
    {
      state: 'dead',
      attempts: 1,
      history: [{ atMs: 8, result: 'timeout', latencyMs: 15_000 }],
      endedMs: 8,
      reason: 'timeout',
    },
  ],
  [
    'skipped 8 1 skipped - 5,500,12',
    { state: 'skipped', attempts: 1, history: [FAILED], endedMs: 8, reason: 'skipped' },
  ],
  ['expired 8 0 retention -', { state: 'expired', attempts: 0, history: [], endedMs: 8, reason: 'retention' }],
])('%s', (text, progress) => {
  expect(parseEventProgress(text)).toEqual(progress);
});
