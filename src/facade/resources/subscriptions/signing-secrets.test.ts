import { describe, expect, test } from 'vitest';
import type { SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import { createKeyRing } from '../../../core/delivery/key-ring.ts';
import { signingSecret } from '../../../core/delivery/signing-secret.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { Cached } from '../../caches/cached.ts';
import { secretsOf } from './signing-secrets.ts';

const NOW_MS = 1_800_000_000_000;
const hoursAgo = (hours: number) => new Date(NOW_MS - hours * 3_600_000).toISOString();
const files = ['root.key', 'root.key.2'].map((name, i) => ({ name, secret: new Uint8Array(32).fill(i + 1) }));
/** The facade's keys, which assumes that the newest key is the first key. */
const keys = createKeyRing(files);
const [old, newest] = keys.all() as [ReturnType<typeof keys.first>, ReturnType<typeof keys.first>];
const facade = { keys, wallMs: () => NOW_MS };
const salt = 'a-salt';

const secret = (key: { readonly secret: Uint8Array }, version: number) =>
  signingSecret({ rootKey: key.secret, subscriptionId: publicId('Subscription', 'ada', 'orders'), salt }, version);

function subscription(secretVersion: number, signing: SubscriptionStatus['signing']): Cached<'Subscription'> {
  return {
    metadata: { name: 'orders', namespace: 'ada' },
    spec: { endpoint: { url: 'https://ada.example/hook', secretVersion } },
    status: { signing },
  } as Cached<'Subscription'>;
}

const answerOf = (secretVersion: number, signing: SubscriptionStatus['signing']) =>
  secretsOf(facade, subscription(secretVersion, signing));

describe('the signing secret', () => {
  test('is derived from the root key that the controller has recorded, and not from the first key of the facade', () => {
    expect(answerOf(1, { salt, version: 1, key: old.id })).toEqual({
      secretVersion: 1,
      secret: secret(old, 1),
      previous: null,
    });
    const rotated = { salt, version: 2, key: newest.id, previousKey: old.id };
    expect(answerOf(2, { ...rotated, rotatedAt: hoursAgo(1) })).toEqual({
      secretVersion: 2,
      secret: secret(newest, 2),
      previous: { secret: secret(old, 1), until: hoursAgo(-23) },
    });
    expect(answerOf(2, { ...rotated, rotatedAt: hoursAgo(24) }).previous).toBeNull();
  });

  test('is the recorded one until the controller has recorded the next version', () => {
    expect(answerOf(2, { salt, version: 1, key: old.id })).toEqual({
      secretVersion: 1,
      secret: secret(old, 1),
      previous: null,
    });
    const rotated = { salt, version: 2, key: old.id, previousKey: old.id, rotatedAt: hoursAgo(1) };
    expect(answerOf(3, rotated)).toEqual({ secretVersion: 2, secret: secret(old, 2), previous: null });
  });

  test.each([
    ['has not written the salt', 1, {}],
    ['has recorded an older version than the one before', 3, { salt, version: 1, key: old.id }],
    ['has recorded a newer version', 1, { salt, version: 2, key: old.id, rotatedAt: hoursAgo(1) }],
    ['has used a root key that the facade lacks', 1, { salt, version: 1, key: 'missing' }],
  ])('is unknown while the controller %s', (_what, version, signing) => {
    expect(() => answerOf(version, signing)).toThrow(expect.objectContaining({ code: 'not_in_force' }));
  });
});
