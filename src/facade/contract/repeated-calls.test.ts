import { expect, test } from 'vitest';
import { Refusal } from '../../http/refusal.ts';
import type { KeyedCall } from '../../idempotency/keyed-calls.ts';
import { idempotencyKeyOf, keyedCallOf, performOnce } from './repeated-calls.ts';

type Parts = Parameters<typeof keyedCallOf>;

const ROUTE = { operation: 'createIngressKey', idempotency: 'answer' } as Parts[0];
const OWNER = { publicId: 'ten_a' };

function callOf(subject: string, body: object = {}): Parts[1] {
  const identity = { issuer: 'https://login.example.com', subject };
  return { idempotencyKey: 'key-1', identity, params: { tenant: 'ten_a' }, query: {}, body } as unknown as Parts[1];
}

test('a repetition must have the same content and the same caller', () => {
  const requestOf = (...call: Parameters<typeof callOf>) => keyedCallOf(ROUTE, callOf(...call), OWNER, 'acme')?.request;
  expect(requestOf('ada')).toBe(requestOf('ada'));
  expect(requestOf('ada', { id: 'another' })).not.toBe(requestOf('ada'));
  expect(requestOf('bob')).not.toBe(requestOf('ada'));
});

test('does not store a call without a key, or of a route without stored responses', () => {
  expect(
    keyedCallOf(ROUTE, { ...callOf('ada'), idempotencyKey: undefined } as Parts[1], OWNER, 'acme'),
  ).toBeUndefined();
  expect(keyedCallOf({ ...ROUTE, idempotency: 'replay' }, callOf('ada'), OWNER, 'acme')).toBeUndefined();
});

test.each<[string, unknown, string]>([
  ['a refused call', new Refusal('forbidden'), 'forget'],
  ['a call that may have had an effect', new Refusal('unavailable'), 'release'],
  ['a call that failed for an unknown reason', new Error('broken'), 'release'],
])('after %s, its key can only be used again if there was no effect', async (_what, error, expected) => {
  const ended: string[] = [];
  const end = async (how: string) => void ended.push(how);
  const calls = { begin: async () => ({ answer: 'RUN' as const, seed: 's', end }) };
  await expect(performOnce(calls, {} as KeyedCall, () => Promise.reject(error))).rejects.toBe(error);
  expect(ended).toEqual([expected]);
});

test.each<[string | string[] | undefined, boolean]>([
  [undefined, true],
  ['!', true],
  ['~'.repeat(255), true],
  ['x'.repeat(256), false],
  ['', false],
  ['a key', false],
  ['ä', false],
  [['a', 'b'], false],
])('the Idempotency-Key %j is valid: %s', (key, isValid) => {
  const read = () => idempotencyKeyOf({ 'idempotency-key': key });
  if (isValid) expect(read()).toBe(key);
  else expect(read).toThrow(expect.objectContaining({ code: 'invalid_request' }));
});
