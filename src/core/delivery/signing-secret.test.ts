import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ROTATION_OVERLAP_MS, signingKey, signingKeys, signingSecret, signingVersions } from './signing-secret.ts';

const rootKey = Buffer.alloc(32, 7);
const subscriptionId = 'sub_0123456789abcdefghjk';
const root = { rootKey, subscriptionId, salt: 'c2FsdA' };

describe('signingKey', () => {
  test('is the HMAC of `<id>.<salt>.<version>`: this layout may never change', () => {
    const expected = createHmac('sha256', Buffer.alloc(32, 7)).update('sub_0123456789abcdefghjk.c2FsdA.2').digest();
    expect(signingKey(root, 2)).toEqual(expected);
  });

  test('differs by root, subscription, salt and version', () => {
    const keys = [
      signingSecret(root, 1),
      signingSecret(root, 2),
      signingSecret({ ...root, subscriptionId: 'sub_other' }, 1),
      signingSecret({ ...root, salt: 'b3RoZXI' }, 1),
      signingSecret({ ...root, rootKey: Buffer.alloc(32, 8) }, 1),
    ];
    expect(new Set(keys).size).toBe(5);
    for (const key of keys) expect(key).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  });

  test.each([0, -1, 1.5, Number.NaN])('version %s is refused', version => {
    expect(() => signingKey(root, version)).toThrow(RangeError);
  });

  test('no salt is refused', () => {
    expect(() => signingKey({ ...root, salt: '' }, 1)).toThrow(RangeError);
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
    expect(signingKeys(root, 3, rotatedAt, rotatedAt)).toEqual([signingKey(root, 3), signingKey(root, 2)]);
  });
});
