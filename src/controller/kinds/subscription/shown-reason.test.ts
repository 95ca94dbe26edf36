import { expect, test } from 'vitest';
import { shownReason } from './shown-reason.ts';

const condition = (type: string, status: 'True' | 'False' | 'Unknown', reason: string) => ({
  type,
  status,
  reason,
  message: '',
});

test.each([
  ['why events do not flow', condition('Ready', 'True', 'Admitted'), condition('Live', 'False', 'Blocked'), 'Blocked'],
  ['else why it is ready', condition('Ready', 'True', 'Admitted'), condition('Live', 'True', 'Live'), 'Admitted'],
  [
    'of one that is not admitted, why',
    condition('Ready', 'Unknown', 'WaitingForGrant'),
    condition('Live', 'False', 'NotAdmitted'),
    'WaitingForGrant',
  ],
  [
    'of one that flows and cannot be brought into force, why',
    condition('Ready', 'False', 'RedisUnavailable'),
    condition('Live', 'True', 'Live'),
    'RedisUnavailable',
  ],
  [
    'of one whose change waits for the end of a pause, why',
    condition('Ready', 'Unknown', 'WorkspacePaused'),
    condition('Live', 'False', 'Suspended'),
    'WorkspacePaused',
  ],
])('%s', (_name, ready, live, reason) => {
  expect(shownReason([ready, live, condition('EndpointFailing', 'False', 'Recovered')])).toEqual({ reason });
});

test('shows the reason of Ready before there is a Live condition, and nothing before that', () => {
  expect(shownReason([condition('Ready', 'Unknown', 'WorkspacePaused')])).toEqual({ reason: 'WorkspacePaused' });
  expect(shownReason([])).toEqual({});
});
