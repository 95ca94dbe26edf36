import { expect, test } from 'vitest';
import { keyedCallOf } from './repeated-calls.ts';

type Parts = Parameters<typeof keyedCallOf>;

const ROUTE = { operation: 'createIngressKey', idempotency: 'answer' } as Parts[0];
const OWNER = { publicId: 'ten_a' };

function callOf(subject: string, body: object = {}): Parts[1] {
  const identity = { issuer: 'https://login.example.com', subject };
  return { idempotencyKey: 'key-1', identity, params: { tenant: 'ten_a' }, query: {}, body } as unknown as Parts[1];
}

test('a repetition must have the same content and the same caller', () => {
  const requestOf = (...call: Parameters<typeof callOf>) => keyedCallOf(ROUTE, callOf(...call), OWNER)?.request;
  expect(requestOf('ada')).toBe(requestOf('ada'));
  expect(requestOf('ada', { id: 'another' })).not.toBe(requestOf('ada'));
  expect(requestOf('bob')).not.toBe(requestOf('ada'));
});

test('does not store a call without a key, or of a route without stored responses', () => {
  expect(keyedCallOf(ROUTE, { ...callOf('ada'), idempotencyKey: undefined } as Parts[1], OWNER)).toBeUndefined();
  expect(keyedCallOf({ ...ROUTE, idempotency: 'replay' }, callOf('ada'), OWNER)).toBeUndefined();
});
