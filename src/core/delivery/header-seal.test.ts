import { describe, expect, test } from 'vitest';
import { createHeaderSeals, type SealOwner } from './header-seal.ts';
import { createKeyRing, keyRingOf } from './key-ring.ts';

const secret = new Uint8Array(32).fill(7);
const ring = keyRingOf(secret);
const CREATED_MS = 1_800_000_000_000;
const clock = { ms: CREATED_MS };
const seals = createHeaderSeals(ring, () => clock.ms);
const VALUE = 'Bearer do-not-show-me';
const owner: SealOwner = {
  subscription: 'sub_a',
  salt: 'a-salt',
  createdMs: CREATED_MS,
  url: 'https://ada.example/hook?a=b',
};
const unsalted = { ...owner, salt: undefined };
const unborn = { ...unsalted, createdMs: undefined };

test('decrypts a value for the same subscription and header, in any case', () => {
  const sealed = seals.seal(owner, 'Authorization', VALUE);
  expect(sealed).not.toContain(VALUE);
  expect(seals.seal(owner, 'authorization', VALUE)).toBe(sealed);
  expect(seals.open(owner, 'AUTHORIZATION', sealed)).toBe(VALUE);
});

test('decrypts a value for any path of the same origin', () => {
  const sealed = seals.seal(owner, 'authorization', VALUE);
  expect(seals.open({ ...owner, url: 'https://ada.example:443/other' }, 'authorization', sealed)).toBe(VALUE);
});

test.each<[string, Partial<SealOwner>]>([
  ['another subscription', { subscription: 'sub_b' }],
  ['a later subscription of the same name', { salt: 'another-salt', createdMs: CREATED_MS + 1_000 }],
  ['another host', { url: 'https://eve.example/hook?a=b' }],
  ['another port', { url: 'https://ada.example:8443/hook?a=b' }],
  ['another scheme', { url: 'http://ada.example/hook?a=b' }],
])('does not decrypt a value for %s', (_what, change) => {
  for (const each of [owner, unsalted]) {
    const sealed = seals.seal(each, 'authorization', VALUE);
    expect(seals.open(each, 'authorization', sealed)).toBe(VALUE);
    expect(seals.open({ ...each, ...change }, 'authorization', sealed)).toBeUndefined();
  }
});

test('does not decrypt a value that was copied to another header, damaged, or encrypted with another key', () => {
  const sealed = seals.seal(owner, 'authorization', VALUE);
  const other = createHeaderSeals(keyRingOf(new Uint8Array(32)), () => clock.ms);
  expect(seals.open(owner, 'x-token', sealed)).toBeUndefined();
  expect(other.open(owner, 'authorization', sealed)).toBeUndefined();
  expect(seals.open(owner, 'authorization', sealed.slice(0, -2))).toBeUndefined();
  expect(seals.open(owner, 'authorization', VALUE)).toBeUndefined();
});

describe('a value for a subscription that does not exist yet', () => {
  test.each([[-300_000], [0], [300_000]])('can be decrypted if it is created %i ms later, also with a salt', ms => {
    const sealed = seals.seal(unborn, 'authorization', VALUE);
    expect(seals.open({ ...unsalted, createdMs: CREATED_MS + ms }, 'authorization', sealed)).toBe(VALUE);
    expect(seals.open({ ...owner, createdMs: CREATED_MS + ms }, 'authorization', sealed)).toBe(VALUE);
  });

  test.each([[-301_000], [301_000]])('cannot be decrypted if it is created %i ms later', ms => {
    const sealed = seals.seal(unborn, 'authorization', VALUE);
    for (const each of [unsalted, owner]) {
      expect(seals.open({ ...each, createdMs: CREATED_MS + ms }, 'authorization', sealed)).toBeUndefined();
    }
  });

  test.each<[string, Partial<SealOwner>]>([
    ['another subscription', { subscription: 'sub_b' }],
    ['another host', { url: 'https://eve.example/hook?a=b' }],
    ['another scheme', { url: 'http://ada.example/hook?a=b' }],
  ])('cannot be decrypted for %s, even at the same time', (_what, change) => {
    const sealed = seals.seal(unborn, 'authorization', VALUE);
    for (const each of [unborn, unsalted, owner]) {
      expect(seals.open(each, 'authorization', sealed)).toBe(VALUE);
      expect(seals.open({ ...each, ...change }, 'authorization', sealed)).toBeUndefined();
      expect(seals.open(each, 'x-token', sealed)).toBeUndefined();
    }
  });

  test('can be decrypted while it is being created, and every byte is kept', () => {
    const value = `1 2\n${String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte))}`;
    expect(seals.open(unborn, 'x-a', seals.seal(unborn, 'x-a', value))).toBe(value);
  });
});

test('a value from before the salt existed can be decrypted with it', () => {
  expect(seals.open(owner, 'x-a', seals.seal(unsalted, 'x-a', VALUE))).toBe(VALUE);
  expect(seals.open(unsalted, 'x-a', seals.seal(owner, 'x-a', VALUE))).toBeUndefined();
});

test('values are encrypted with the first root key, and decrypted with any', () => {
  const both = createKeyRing([
    { name: 'root.key', secret },
    { name: 'root.key.2', secret: new Uint8Array(32) },
  ]);
  const of = createHeaderSeals(both, () => clock.ms);
  const old = seals.seal(owner, 'x-a', VALUE);
  expect(of.open(owner, 'x-a', old)).toBe(VALUE);
  expect(of.seal(owner, 'x-a', VALUE)).not.toBe(old);
  both.follow(both.oldest().fingerprint);
  expect(of.seal(owner, 'x-a', VALUE)).toBe(old);
});
