import { PAUSED_ANNOTATION } from '../../../api/well-known.ts';
import { type LimitPolicy, limitsOf } from '../../../core/limits/limits.ts';
import type { AnyObject } from '../../../kube/object.ts';
import type { Cached, Caches } from '../../caches/caches.ts';
import {
  fromWorkspaces,
  isCreatedOrDeleted,
  keyOfChanged,
  keysInNamespace,
  ownersOf,
  workspacesOf,
} from '../../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/** If the workspace label of a namespace is added or removed, this returns all integrations in the namespace. */
function fromNamespaces(caches: Caches): KeySource {
  return keysFrom(caches.namespaces, (old, current) =>
    [old, current].flatMap(each => (each === undefined ? [] : keysInNamespace(caches, 'Integration', each.workspace))),
  );
}

/**
 * Returns the sources that are used for the keys of integrations. An integration is enqueued if its workspace was
 * created or deleted, or if the owner of its namespace has changed. It is also enqueued if a Subscription was created
 * or deleted in the workspace that it was granted to.
 */
export function integrationSources(caches: Caches): readonly KeySource[] {
  return [
    fromWorkspaces(caches, 'Integration'),
    fromNamespaces(caches),
    keysFrom(caches.Subscription, (old, current) => {
      const subscription = current ?? old;
      if (subscription === undefined || !isCreatedOrDeleted(old, current)) return [];
      const { metadata, spec } = subscription;
      const key = `${spec.producer}/${spec.integration}`;
      return caches.Integration.store.get(key)?.spec.workspace === metadata.namespace ? [key] : [];
    }),
  ];
}

const pausedBy = (workspace: AnyObject | undefined) => workspace?.metadata.annotations?.[PAUSED_ANNOTATION];

/**
 * Returns the fields that are used to decide if an invitation should be sent. The result of the last attempt is not
 * included.
 */
function invitationFields(integration: Cached<'Integration'> | undefined): string {
  if (integration === undefined) return '';
  const { metadata, spec, status } = integration;
  const { tokenHash, sentAt } = status?.invitation ?? {};
  const accepted = status?.conditions?.find(({ type }) => type === 'Accepted')?.reason;
  const { workspace, declined, revoked } = spec;
  return JSON.stringify([metadata.uid, tokenHash, sentAt, accepted, workspace, declined, revoked]);
}

/**
 * Returns the sources that are used for invitations. The keys are the same as for integrations. An invitation is
 * enqueued if it might have to be sent, if its Secret was changed or deleted, if its workspace was paused or resumed,
 * or if the limit of its account has changed. If an attempt has failed, it is not enqueued, because it should wait for
 * the backoff.
 */
export function invitationSources(caches: Caches, policy: LimitPolicy): readonly KeySource[] {
  const mailsOf = (account: Cached<'Account'> | undefined) =>
    account && limitsOf(account.spec, policy).invitationMailsPerDay;
  return [
    // It may now be possible to send the emails that were waiting for the limit of the account.
    keysFrom(caches.Account, (old, current) =>
      old === undefined || current === undefined || mailsOf(old) === mailsOf(current)
        ? []
        : workspacesOf(caches, current.metadata.name).flatMap(name => keysInNamespace(caches, 'Integration', name)),
    ),
    keysFrom(caches.Integration, (old, current) =>
      invitationFields(old) === invitationFields(current) ? [] : keyOfChanged(old, current),
    ),
    keysFrom(caches.invitationSecrets, ownersOf),
    keysFrom(caches.Workspace, (old, current) =>
      isCreatedOrDeleted(old, current) || pausedBy(old) !== pausedBy(current)
        ? keyOfChanged(old, current).flatMap(name => keysInNamespace(caches, 'Integration', name))
        : [],
    ),
    fromNamespaces(caches),
  ];
}
