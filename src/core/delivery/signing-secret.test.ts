import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createKeyRing, keyRingOf } from './key-ring.ts';
import {
  ROTATION_OVERLAP_MS,
  signedBy,
  signingKey,
  signingKeys,
  signingSecret,
  signingVersions,
} from './signing-secret.ts';

const rootKey = Buffer.alloc(32, 7);
const subscriptionId = 'sub_0123456789abcdefghjk';
const root = { rootKey, subscriptionId, salt: 'c2FsdA' };

describe('signingKey', () => {
  test('is the HMAC of `<id>.<salt>.<version>`, which must never change', () => {
    const expected = createHmac('sha256', Buffer.alloc(32, 7)).update('sub_0123456789abcdefghjk.c2FsdA.2').digest();
    expect(signingKey(root, 2)).toEqual(expected);
  });

  test('differs by root key, subscription, salt, and version', () => {
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

  test('an empty salt is refused', () => {
    expect(() => signingKey({ ...root, salt: '' }, 1)).toThrow(RangeError);
    // This is the same as for an endpoint from before salts were introduced.
    expect(() => signingKey({ rootKey, subscriptionId } as unknown as typeof root, 1)).toThrow(RangeError);
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
    const keys = signingKeys(keyRingOf(rootKey), root, 3, rotatedAt, rotatedAt);
    expect(keys).toEqual([signingKey(root, 3), signingKey(root, 2)]);
  });
});

describe('with several root keys', () => {
  const newer = { name: 'root.key.2', secret: Buffer.alloc(32, 8) };
  const ring = createKeyRing([{ name: 'root.key', secret: rootKey }, newer]);
  const { id } = ring.newest();
  const other = { ...root, rootKey: newer.secret };
  const owner = { subscriptionId, salt: root.salt };

  test('each version keeps the root key from which it was derived, and uses the oldest one without an id', () => {
    expect(signingKeys(ring, owner, 1, undefined, 0)).toEqual([signingKey(root, 1)]);
    expect(signingKeys(ring, { ...owner, key: id }, 1, undefined, 0)).toEqual([signingKey(other, 1)]);
    expect(signingKeys(ring, { ...owner, key: id }, 2, 0, 0)).toEqual([signingKey(other, 2), signingKey(root, 1)]);
    const both = { ...owner, key: id, previousKey: id };
    expect(signingKeys(ring, both, 2, 0, 0)).toEqual([signingKey(other, 2), signingKey(other, 1)]);
  });

  test('there is no signature without the root key of a version in use', () => {
    const lost = 'AAAAAAAAAA';
    expect(() => signingKeys(ring, { ...owner, key: lost }, 1, undefined, 0)).toThrow(lost);
    const rotated = { ...owner, key: id, previousKey: lost };
    expect(() => signingKeys(ring, rotated, 2, 0, ROTATION_OVERLAP_MS - 1)).toThrow(lost);
    expect(signingKeys(ring, rotated, 2, 0, ROTATION_OVERLAP_MS)).toEqual([signingKey(other, 2)]);
  });

  test('only a new version is derived from the first root key', () => {
    expect(signedBy(undefined, 1, 'first')).toEqual({});
    expect(signedBy({ key: 'a' }, 3, 'first')).toEqual({ key: 'a' });
    expect(signedBy({ version: 1, key: 'a' }, 1, 'first')).toEqual({ key: 'a' });
    expect(signedBy({ version: 1, key: 'a' }, 2, 'first')).toEqual({ key: 'first', previousKey: 'a' });
    expect(signedBy({ version: 1 }, 2, 'first')).toEqual({ key: 'first' });
    expect(signedBy({ version: 2, key: 'b', previousKey: 'a' }, 2, 'first')).toEqual({ key: 'b', previousKey: 'a' });
    expect(signedBy({ version: 2, key: 'b', previousKey: 'a' }, 3, 'first')).toEqual({
      key: 'first',
      previousKey: 'b',
    });
  });
});
