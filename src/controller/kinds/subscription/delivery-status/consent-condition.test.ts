import { expect, test } from 'vitest';
import { withConsent } from './consent-condition.ts';

const ready = { type: 'Ready', status: 'True', reason: 'Admitted', message: '' } as const;
const live = { type: 'Live', status: 'True', reason: 'Live', message: 'events flow' } as const;
const blocked = { type: 'Live', status: 'False', reason: 'Blocked', message: '' } as const;
const pushed = { spec: { endpoint: { url: 'https://a.example/' } } };

test('an endpoint that has not agreed is not live', () => {
  expect(withConsent([ready, live], pushed, { lastAttempt: 'ConsentMissing' })).toEqual([
    ready,
    {
      type: 'Live',
      status: 'False',
      reason: 'WaitingForConsent',
      message: expect.stringMatching(/WebHook-Allowed-Origin/),
    },
  ]);
});

test.each([
  ['another result of the last attempt', [ready, live], pushed, { lastAttempt: 'Succeeded' }],
  ['no attempt', [ready, live], pushed, {}],
  ['no endpoint any more', [ready, live], { spec: {} }, { lastAttempt: 'ConsentMissing' }],
  ['another reason', [ready, blocked], pushed, { lastAttempt: 'ConsentMissing' }],
] as const)('with %s, the conditions do not change', (_, conditions, subscription, delivery) => {
  expect(withConsent(conditions, subscription, delivery)).toEqual(conditions);
});
