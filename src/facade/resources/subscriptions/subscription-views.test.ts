import { describe, expect, test } from 'vitest';
import { EndpointRequest, SubscriptionEntry, subscriptionEntry, subscriptionStatus } from './subscription-views.ts';

const condition = (type: string, status: 'True' | 'False' | 'Unknown', reason: string) => ({
  type,
  status,
  reason,
  message: `about ${reason}`,
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

describe('status', () => {
  test.each([
    ['Live', 'Live', [condition('Live', 'True', 'Live')]],
    ['Paused', 'Blocked', [condition('Ready', 'True', 'Admitted'), condition('Live', 'False', 'Blocked')]],
    ['Paused', 'EndpointRefused', [condition('Live', 'False', 'EndpointRefused')]],
    [
      'Pending',
      'WaitingForStream',
      [condition('Ready', 'Unknown', 'WaitingForStream'), condition('Live', 'False', 'NotAdmitted')],
    ],
  ] as const)('%s/%s', (status, reason, conditions) => {
    expect(subscriptionStatus({ status: { conditions: [...conditions] } }, false)).toEqual({
      status,
      reason,
      message: `about ${reason}`,
    });
  });

  test('is Pending without a status, and Closed for a closed integration', () => {
    expect(subscriptionStatus({ status: undefined }, false).status).toBe('Pending');
    const conditions = [condition('Live', 'True', 'Live')];
    expect(subscriptionStatus({ status: { conditions } }, true).status).toBe('Closed');
  });
});

test('an entry contains the defaults, and no header values', () => {
  const entry = subscriptionEntry(
    {
      metadata: {
        name: 'orders',
        namespace: 'ada',
        uid: 'u',
        resourceVersion: '1',
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
      spec: {
        producer: 'shop',
        integration: 'ada',
        stream: 'orders',
        ordering: 'ByGroupKey',
        deletionPolicy: 'Retain',
        endpoint: { url: 'https://ada.example', headers: [{ name: 'authorization', value: 'Bearer hidden' }] },
      },
    },
    false,
  );
  expect(SubscriptionEntry.parse(entry)).toEqual(entry);
  expect(entry.endpoint).toMatchObject({
    timeoutSeconds: 15,
    maxPerSecond: null,
    headers: [{ name: 'authorization' }],
  });
  expect(entry.endpoint?.retrySchedule).toHaveLength(9);
  expect(JSON.stringify(entry)).not.toContain('hidden');
});

test('a subscription whose endpoint has failed since its first attempt is Live, and has the result of the last attempt', () => {
  const spec = {
    producer: 'shop',
    integration: 'ada',
    stream: 'orders',
    ordering: 'None',
    deletionPolicy: 'Retain',
  } as const;
  const metadata = { name: 'orders', namespace: 'ada', uid: 'u', resourceVersion: '1' };
  const conditions = [condition('Live', 'True', 'Live')];
  const delivery = { lastAttempt: 'HttpError', lastAttemptSince: '2026-01-01T00:00:00Z' } as const;
  expect(subscriptionEntry({ metadata, spec, status: { conditions, delivery } }, false)).toMatchObject({
    status: 'Live',
    ...delivery,
  });
  const unused = subscriptionEntry({ metadata, spec, status: { conditions } }, false);
  expect(unused).toMatchObject({ lastAttempt: null, lastAttemptSince: null });
});

test.each([
  ['True', 'FailingOneDay', 'about FailingOneDay'],
  ['False', 'Recovered', null],
] as const)('an endpoint that only fails has a warning: %s/%s', (status, reason, expected) => {
  const entry = subscriptionEntry(
    {
      metadata: { name: 'orders', namespace: 'ada', uid: 'u', resourceVersion: '1' },
      spec: { producer: 'shop', integration: 'ada', stream: 'orders', ordering: 'None', deletionPolicy: 'Retain' },
      status: { conditions: [condition('Live', 'True', 'Live'), condition('EndpointFailing', status, reason)] },
    },
    false,
  );
  expect(entry).toMatchObject({ status: 'Live', endpointWarning: expected });
});

test.each([
  [
    'a header twice, in two cases',
    {
      url: 'https://a.example',
      headers: [
        { name: 'A', value: '1' },
        { name: 'a', value: '2' },
      ],
    },
  ],
  ['a reserved header', { url: 'https://a.example', headers: [{ name: 'webhook-id', value: '1' }] }],
  ['a value from a Secret', { url: 'https://a.example', headers: [{ name: 'a', valueFrom: {} }] }],
  ['user info', { url: 'https://me:pass@a.example' }],
  ['a version of the secret', { url: 'https://a.example', secretVersion: 2 }],
])('an endpoint with %s is refused', (_what, requested) => {
  expect(EndpointRequest.safeParse(requested).success).toBe(false);
});
