import { expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../test/support/controller/test-context.ts';
import { invitationSecretName, signingSecretName } from '../../api/well-known.ts';
import type { ChangeHandler } from '../../kube/reflected.ts';
import type { Caches } from '../caches/caches.ts';
import type { HeaderSecret } from '../caches/secret-caches.ts';
import { fromFreedNames } from './refused-secret.ts';

test.each([
  ['Integration', invitationSecretName, 'acme/globex-invitation', ['acme/globex']],
  ['Integration', invitationSecretName, 'acme/other-invitation', []],
  ['Integration', invitationSecretName, 'acme/globex', []],
  ['Subscription', signingSecretName, 'acme/globex-signing', ['acme/globex']],
  ['Subscription', signingSecretName, 'acme/globex-invitation', []],
] as const)('an %s is enqueued when the name of its Secret is free again: %s, %s', (kind, nameOf, key, expected) => {
  const object = objectOf<typeof kind>('globex', {} as never, { namespace: 'acme' });
  const { context } = createTestContext({ [kind]: [object] });
  let tell: ChangeHandler<HeaderSecret> = () => {};
  const subscribe = (handler: ChangeHandler<HeaderSecret>) => {
    tell = handler;
    return () => {};
  };
  const added: string[] = [];
  const caches = { ...context.caches, headerSecrets: { subscribe } } as unknown as Caches;
  fromFreedNames(caches, kind, nameOf).subscribe(each => added.push(each));
  const secret = { key, resourceVersion: '1' };
  tell('added', key, undefined, secret);
  tell('updated', key, secret, { key, resourceVersion: '2' });
  expect(added).toEqual([]);
  tell('deleted', key, secret, undefined);
  expect(added).toEqual(expected);
});
