import { expect, test } from 'vitest';
import { ingressKeysOf } from './ingress-keys.ts';
import type { TenantSnapshot } from './snapshot.ts';

const expiresAt = '2030-01-01T00:00:00Z';

function keysOf(ingressKeys: readonly object[] | undefined, secretKeys: readonly string[]) {
  const workspace = { spec: { account: 'main', ingressKeys } };
  return ingressKeysOf({ workspace, secretKeys } as unknown as TenantSnapshot);
}

test('keys end at the time set through REST, and those in a Secret together with the Secret', () => {
  const listed = [{ sha256: 'a', expiresAt }, { sha256: 'b' }, { sha256: 'c', expiresAt }];
  expect(keysOf(listed, ['c', 'd'])).toEqual({ a: String(Date.parse(expiresAt)), b: '', c: '', d: '' });
  expect(keysOf(undefined, ['d'])).toEqual({ d: '' });
});

test('a deleted workspace does not have any keys', () => {
  expect(ingressKeysOf({ secretKeys: ['d'] } as unknown as TenantSnapshot)).toEqual({});
});
