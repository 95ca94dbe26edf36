import { expect, test } from 'vitest';
import type { Identity } from './identity.ts';
import type { KeySet } from './issuer-documents.ts';
import { createVerifiedTokens } from './verified-tokens.ts';

const identity = { subject: 'ada' } as Identity;
const KEYS: KeySet = { keys: [] };

function create() {
  const clock = { ms: 0 };
  return { clock, ...createVerifiedTokens(() => clock.ms) };
}

test('a token is known for 30 s', () => {
  const { clock, add, find } = create();
  expect(find('token', KEYS)).toBeUndefined();
  add('token', KEYS, identity);
  clock.ms = 29_999;
  expect(find('token', KEYS)).toBe(identity);
  clock.ms = 30_000;
  expect(find('token', KEYS)).toBeUndefined();
});

test('a token is not known once the keys were read again, even if they are the same', () => {
  const { add, find } = create();
  add('token', KEYS, identity);
  expect(find('token', { keys: [] })).toBeUndefined();
});

test.each(['toke', 'tokeN', 'token '])('%j is another token', other => {
  const { add, find } = create();
  add('token', KEYS, identity);
  expect(find(other, KEYS)).toBeUndefined();
});

test('the 10,000 last tokens are kept', () => {
  const { add, find } = create();
  for (let n = 0; n <= 10_000; n++) add(`token-${n}`, KEYS, identity);
  expect([find('token-0', KEYS), find('token-1', KEYS)]).toEqual([undefined, identity]);
});
