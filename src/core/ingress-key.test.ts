import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { formatIngressKey, hashIngressKey } from './ingress-key.ts';

test('a key holds all of its 256 bits behind a prefix, in characters that every header takes', () => {
  const random = Uint8Array.from({ length: 32 }, (_, i) => i * 8);
  const key = formatIngressKey(random);
  expect(key).toMatch(/^slk_[A-Za-z0-9_-]{43}$/);
  expect([...Buffer.from(key.slice(4), 'base64url')]).toEqual([...random]);
  expect(() => formatIngressKey(random.slice(1))).toThrow(RangeError);
});

test('a hash is the SHA-256 of what is sent', () => {
  expect(hashIngressKey('slk_a')).toBe(createHash('sha256').update('slk_a').digest('hex'));
});
