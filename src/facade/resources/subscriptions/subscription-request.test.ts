import { expect, test } from 'vitest';
import type { SubscriptionSpec } from '../../../api/kinds/subscription.ts';
import { Refusal } from '../../../http/refusal.ts';
import { matchesRequest, requestedFields, requestOfChange } from './subscription-request.ts';

const url = 'https://ada.example/hook';
const spec: SubscriptionSpec = {
  producer: 'shop',
  integration: 'ada',
  stream: 'orders',
  ordering: 'ByGroupKey',
  deletionPolicy: 'Retain',
};
const headers = [
  { name: 'x-b', value: '2' },
  { name: 'X-A', value: '1' },
];

test('an endpoint is written with its headers in order, and without what is absent', () => {
  expect(requestedFields({ endpoint: { url, headers, retrySchedule: ['5s', '1s'] } })).toEqual({
    endpoint: { url, headers: headers.toReversed(), retrySchedule: ['5s', '1s'] },
  });
  expect(requestedFields({ endpoint: { url, headers: [] }, suspended: false })).toEqual({ endpoint: { url } });
  expect(requestedFields({ suspended: true })).toEqual({ suspended: true });
  expect(requestedFields({})).toEqual({});
});

test('a change keeps the version of the secret and when the endpoint was enabled', () => {
  const present = { spec: { ...spec, endpoint: { url: 'https://old.example', secretVersion: 3, enabledAt: 'then' } } };
  expect(requestedFields({ endpoint: { url } }, present)).toEqual({
    endpoint: { url, secretVersion: 3, enabledAt: 'then' },
  });
});

test('an endpoint that was away comes back with the newest secret that has signed', () => {
  const signed = (version: number) => ({ spec, status: { signing: { version } } });
  expect(requestedFields({ endpoint: { url } }, signed(4))).toEqual({ endpoint: { url, secretVersion: 4 } });
  expect(requestedFields({ endpoint: { url } }, signed(1))).toEqual({ endpoint: { url } });
});

test('a requested is compared with what is there: order of headers and secrets aside', () => {
  const present = { ...spec, endpoint: { url, headers, secretVersion: 2, enabledAt: 'then' } };
  expect(matchesRequest(present, { endpoint: { url, headers: headers.toReversed() } })).toBe(true);
  expect(matchesRequest({ ...present, suspended: true }, { endpoint: { url, headers } })).toBe(true);
  expect(matchesRequest(present, { endpoint: { url, headers }, ordering: 'ByGroupKey' })).toBe(true);
  expect(matchesRequest(present, { endpoint: { url, headers }, ordering: 'None' })).toBe(false);
  expect(matchesRequest(present, { endpoint: { url } })).toBe(false);
  expect(matchesRequest(present, {})).toBe(false);
  expect(matchesRequest(spec, {})).toBe(true);
  expect(matchesRequest(spec, { endpoint: { url } })).toBe(false);
});

const withHeaders: SubscriptionSpec = {
  ...spec,
  endpoint: { url, headers: [...headers, { name: 'x-c', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] },
};

function errorsOf(run: () => unknown) {
  try {
    run();
  } catch (error) {
    if (error instanceof Refusal) return { code: error.code, errors: error.facts.errors };
    throw error;
  }
  return undefined;
}

test.each([[{}], [{ suspended: true }], [{ suspended: false }]])(
  'a change %j does not take an endpoint away',
  change => {
    expect(errorsOf(() => requestOfChange(change, withHeaders))).toEqual({
      code: 'invalid_request',
      errors: [{ pointer: '/endpoint', detail: expect.stringContaining('null to remove it') }],
    });
    expect(requestOfChange(change, spec)).toEqual({ ...change });
  },
);

test('null takes an endpoint away', () => {
  expect(requestOfChange({ endpoint: null, suspended: true }, withHeaders)).toEqual({ suspended: true });
});

test('a header without a value keeps the stored one, wherever its value is; others are removed', () => {
  const requested = requestOfChange(
    {
      endpoint: { url, maxPerSecond: null, headers: [{ name: 'X-B' }, { name: 'x-c' }, { name: 'x-d', value: 'new' }] },
    },
    withHeaders,
  );
  expect(requested.endpoint).toEqual({
    url,
    headers: [
      { name: 'X-B', value: '2' },
      { name: 'x-c', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
      { name: 'x-d', value: 'new' },
    ],
  });
  expect(requestOfChange({ endpoint: { url } }, withHeaders)).toEqual({ endpoint: { url } });
});

test('a header without a value needs a stored one', () => {
  const change = { endpoint: { url, headers: [{ name: 'x-b' }, { name: 'x-z' }] } };
  expect(errorsOf(() => requestOfChange(change, withHeaders))?.errors).toEqual([
    { pointer: '/endpoint/headers/1/value', detail: expect.stringContaining('no stored value') },
  ]);
});
