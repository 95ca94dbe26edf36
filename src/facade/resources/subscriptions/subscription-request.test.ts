import { expect, test } from 'vitest';
import type { SubscriptionSpec } from '../../../api/kinds/subscription.ts';
import { createHeaderSeals } from '../../../core/delivery/header-seal.ts';
import { keyRingOf } from '../../../core/delivery/key-ring.ts';
import { Refusal } from '../../../http/refusal.ts';
import { matchesRequest, requestedFields, requestOfChange, sealRequest, sealsOf } from './subscription-request.ts';

const url = 'https://ada.example/hook';
const object = { namespace: 'ada', name: 'orders' };
const headerSeals = createHeaderSeals(keyRingOf(new Uint8Array(32).fill(7)), () => 0);
const sealsFor = (to: string) => sealsOf(headerSeals, object, undefined, to);
const seals = sealsFor(url);
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

test('writes an endpoint with sorted headers and without missing fields', () => {
  expect(requestedFields({ endpoint: { url, headers, retrySchedule: ['5s', '1s'] } })).toEqual({
    endpoint: { url, headers: headers.toReversed(), retrySchedule: ['5s', '1s'] },
  });
  expect(requestedFields({ endpoint: { url, headers: [] }, suspended: false })).toEqual({ endpoint: { url } });
  expect(requestedFields({ suspended: true })).toEqual({ suspended: true });
  expect(requestedFields({})).toEqual({});
});

test('a change keeps the version of the secret and the time when the endpoint was enabled', () => {
  const present = { spec: { ...spec, endpoint: { url: 'https://old.example', secretVersion: 3, enabledAt: 'then' } } };
  expect(requestedFields({ endpoint: { url } }, present)).toEqual({
    endpoint: { url, secretVersion: 3, enabledAt: 'then' },
  });
});

test('uses the newest secret again if an endpoint is restored', () => {
  const signed = (version: number) => ({ spec, status: { signing: { version } } });
  expect(requestedFields({ endpoint: { url } }, signed(4))).toEqual({ endpoint: { url, secretVersion: 4 } });
  expect(requestedFields({ endpoint: { url } }, signed(1))).toEqual({ endpoint: { url } });
});

test('compares a request with the subscription, ignoring secrets and the order of headers', () => {
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

test.each([[{}], [{ suspended: true }], [{ suspended: false }]])('a change %j does not remove an endpoint', change => {
  expect(errorsOf(() => requestOfChange(change, withHeaders, seals))).toEqual({
    code: 'invalid_request',
    errors: [{ pointer: '/endpoint', detail: expect.stringContaining('null to remove it') }],
  });
  expect(requestOfChange(change, spec, seals)).toEqual({ ...change });
});

test('null removes an endpoint', () => {
  expect(requestOfChange({ endpoint: null, suspended: true }, withHeaders, seals)).toEqual({ suspended: true });
});

test('a header without a value keeps the stored value in any form; other headers are removed', () => {
  const requested = requestOfChange(
    {
      endpoint: { url, maxPerSecond: null, headers: [{ name: 'X-B' }, { name: 'x-c' }, { name: 'x-d', value: 'new' }] },
    },
    withHeaders,
    seals,
  );
  expect(requested.endpoint).toEqual({
    url,
    headers: [
      { name: 'X-B', value: '2' },
      { name: 'x-c', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
      { name: 'x-d', valueSealed: seals.seal('x-d', 'new') },
    ],
  });
  expect(requestOfChange({ endpoint: { url } }, withHeaders, seals)).toEqual({ endpoint: { url } });
});

test('a header without a value requires a stored value', () => {
  const change = { endpoint: { url, headers: [{ name: 'x-b' }, { name: 'x-z' }] } };
  expect(errorsOf(() => requestOfChange(change, withHeaders, seals))?.errors).toEqual([
    { pointer: '/endpoint/headers/1/value', detail: expect.stringContaining('no stored value') },
  ]);
});

const sent = (name: string, value: string) => ({ endpoint: { url, headers: [{ name, value }] } });
const storedAs = (header: object): SubscriptionSpec => ({
  ...spec,
  endpoint: { url, headers: [header] } as SubscriptionSpec['endpoint'],
});

test('a value is encrypted for its subscription, and repeating the request does not change anything', () => {
  const asked = sealRequest(sent('X-Token', 'do-not-show-me'), undefined, seals);
  expect(JSON.stringify(asked)).not.toContain('do-not-show-me');
  const [header] = asked.endpoint?.headers ?? [];
  expect(seals.open('x-token', header?.valueSealed ?? '')).toBe('do-not-show-me');
  const stored = storedAs(header as object);
  expect(matchesRequest(stored, sealRequest(sent('X-Token', 'do-not-show-me'), stored, seals))).toBe(true);
  expect(matchesRequest(stored, sealRequest(sent('X-Token', 'another'), stored, seals))).toBe(false);
  expect(requestOfChange(sent('X-Token', 'do-not-show-me'), stored, seals).endpoint).toEqual(stored.endpoint);
});

test('a stored value keeps its form', () => {
  const older = { seal: (_header: string, value: string) => `s2.${value}`, open: () => 'same' };
  const forms = [{ value: 'same' }, { valueSealed: 's2.older-key' }];
  for (const form of forms) {
    const stored = storedAs({ name: 'X-A', ...form });
    expect(requestOfChange(sent('X-A', 'same'), stored, older).endpoint).toEqual(stored.endpoint);
    expect(sealRequest(sent('x-a', 'same'), stored, older).endpoint?.headers).toEqual([{ name: 'x-a', ...form }]);
    expect(requestOfChange(sent('X-A', 'other'), stored, older).endpoint?.headers).toEqual([
      { name: 'X-A', valueSealed: 's2.other' },
    ]);
  }
});

test('a stored value is not kept for another host, and is required again', () => {
  const [header] = sealRequest(sent('x-a', 'same'), undefined, seals).endpoint?.headers ?? [];
  const stored = storedAs(header as object);
  const change = (to: string, value?: string) => ({
    endpoint: { url: to, headers: [{ name: 'x-a', ...(value === undefined ? {} : { value }) }] },
  });
  const path = 'https://ada.example/other';
  expect(requestOfChange(change(path), stored, sealsFor(path)).endpoint?.headers).toEqual([header]);
  for (const to of ['https://eve.example/hook', 'https://ada.example:8443/hook']) {
    expect(errorsOf(() => requestOfChange(change(to), stored, sealsFor(to)))?.errors).toEqual([
      { pointer: '/endpoint/headers/0/value', detail: expect.stringContaining('from https://ada.example to https://') },
    ]);
    const [again] = requestOfChange(change(to, 'same'), stored, sealsFor(to)).endpoint?.headers ?? [];
    expect(again?.valueSealed).not.toBe(header?.valueSealed);
    expect(sealsFor(to).open('x-a', again?.valueSealed ?? '')).toBe('same');
    expect(sealsFor(to).open('x-a', header?.valueSealed ?? '')).toBeUndefined();
  }
});

test('a value that cannot be decrypted is replaced', () => {
  const stored = storedAs({ name: 'x-a', valueSealed: 's2.foreign' });
  expect(requestOfChange(sent('x-a', 'new'), stored, seals).endpoint?.headers).toEqual([
    { name: 'x-a', valueSealed: seals.seal('x-a', 'new') },
  ]);
});
