import { expect, test } from 'vitest';
import { shownReason } from './shown-reason.ts';

const said = (type: string, status: 'True' | 'False' | 'Unknown', reason: string) => ({
  type,
  status,
  reason,
  message: '',
});

test.each([
  ['why events do not flow', said('Ready', 'True', 'Admitted'), said('Live', 'False', 'Blocked'), 'Blocked'],
  ['else why it is ready', said('Ready', 'True', 'Admitted'), said('Live', 'True', 'Live'), 'Admitted'],
  [
    'of one that is not admitted, why',
    said('Ready', 'Unknown', 'WaitingForGrant'),
    said('Live', 'False', 'NotAdmitted'),
    'WaitingForGrant',
  ],
  [
    'of one that flows and cannot be brought into force, why',
    said('Ready', 'False', 'RedisUnavailable'),
    said('Live', 'True', 'Live'),
    'RedisUnavailable',
  ],
])('%s', (_name, ready, live, reason) => {
  expect(shownReason([ready, live, said('EndpointFailing', 'False', 'Recovered')])).toEqual({ reason });
});

test('shows the reason of Ready before there is a Live condition, and nothing before that', () => {
  expect(shownReason([said('Ready', 'Unknown', 'WorkspacePaused')])).toEqual({ reason: 'WorkspacePaused' });
  expect(shownReason([])).toEqual({});
});
