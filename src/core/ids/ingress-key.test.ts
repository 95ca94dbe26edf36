import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { faultOfIngressKey, formatIngressKey, hashIngressKey } from './ingress-key.ts';

test('a key consists of a prefix and 256 bits, using characters that are valid in every header', () => {
  const random = Uint8Array.from({ length: 32 }, (_, i) => i * 8);
  const key = formatIngressKey(random);
  expect(key).toMatch(/^slk_[A-Za-z0-9_-]{43}$/);
  expect([...Buffer.from(key.slice(4), 'base64url')]).toEqual([...random]);
  expect(() => formatIngressKey(random.slice(1))).toThrow(RangeError);
});

test('a hash is the SHA-256 of the sent bytes', () => {
  expect(hashIngressKey('slk_a')).toBe(createHash('sha256').update('slk_a').digest('hex'));
});

test.each([
  ['abc', 'it has 3 bytes; use 20 or more random characters'],
  ['', 'it has 0 bytes; use 20 or more random characters'],
  ['k'.repeat(19), 'it has 19 bytes; use 20 or more random characters'],
  ['k'.repeat(513), 'it has 513 bytes; use 512 at most'],
  [
    `${'k'.repeat(30)}\n`,
    'it contains characters that headers do not allow. Remove line breaks, control characters and leading or trailing spaces',
  ],
  [
    ` ${'k'.repeat(30)}`,
    'it contains characters that headers do not allow. Remove line breaks, control characters and leading or trailing spaces',
  ],
  [
    `${'k'.repeat(30)}\u0000`,
    'it contains characters that headers do not allow. Remove line breaks, control characters and leading or trailing spaces',
  ],
])('%j does not give access, and the fault contains the reason', (key, fault) => {
  expect(faultOfIngressKey(Buffer.from(key))).toBe(fault);
});

test.each(['k'.repeat(20), 'k'.repeat(512), 'ein Schlüssel mit Leerzeichen', formatIngressKey(new Uint8Array(32))])(
  '%s is a valid key',
  key => expect(faultOfIngressKey(Buffer.from(key))).toBeUndefined(),
);
