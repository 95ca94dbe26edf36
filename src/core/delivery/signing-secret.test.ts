import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ROTATION_OVERLAP_MS, signingKey, signingKeys, signingSecret, signingVersions } from './signing-secret.ts';

const rootKey = Buffer.alloc(32, 7);
const subscriptionId = 'sub_0123456789abcdefghjk';

describe('signingKey', () => {
  test('is the HMAC of `<id>.<version>`: this layout may never change', () => {
    const expected = createHmac('sha256', Buffer.alloc(32, 7)).update('sub_0123456789abcdefghjk.2').digest();
    expect(signingKey(rootKey, subscriptionId, 2)).toEqual(expected);
    expect(signingKey(rootKey, subscriptionId, 1).toString('hex')).toBe(
      '8d0f3542b5ee1ec5a69ca5927b23da0b7a5a732403297b7ae5a2bae0d0f5aec0',
    );
  });

  test('differs by root, subscription and version', () => {
    const keys = [
      signingSecret(rootKey, subscriptionId, 1),
      signingSecret(rootKey, subscriptionId, 2),
      signingSecret(rootKey, 'sub_other', 1),
      signingSecret(Buffer.alloc(32, 8), subscriptionId, 1),
    ];
    expect(new Set(keys).size).toBe(4);
    for (const key of keys) expect(key).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  });

  test.each([0, -1, 1.5, Number.NaN])('version %s is refused', version => {
    expect(() => signingKey(rootKey, subscriptionId, version)).toThrow(RangeError);
  });
});

describe('signingVersions', () => {
  const rotatedAt = 1_000_000;
  test.each<[number, number | undefined, number, number[]]>([
    [1, undefined, rotatedAt, [1]],
    [1, rotatedAt, rotatedAt + 1, [1]],
    [3, rotatedAt, rotatedAt, [3, 2]],
    [3, rotatedAt, rotatedAt + ROTATION_OVERLAP_MS - 1, [3, 2]],
    [3, rotatedAt, rotatedAt + ROTATION_OVERLAP_MS, [3]],
    [3, undefined, rotatedAt, [3]],
    [3, rotatedAt, rotatedAt - 1, [3, 2]],
  ])('version %i rotated at %s, at %i: %j', (version, at, now, expected) => {
    expect(signingVersions(version, at, now)).toEqual(expected);
  });

  test('signingKeys are the keys of the versions', () => {
    expect(signingKeys({ rootKey, subscriptionId }, 3, rotatedAt, rotatedAt)).toEqual([
      signingKey(rootKey, subscriptionId, 3),
      signingKey(rootKey, subscriptionId, 2),
    ]);
  });
});
