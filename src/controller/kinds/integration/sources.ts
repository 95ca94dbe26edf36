import { invitationSecretName, PAUSED_ANNOTATION } from '../../../api/well-known.ts';
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
import { fromFreedNames } from '../refused-secret.ts';

/** Returns all integrations in a namespace when its workspace label is added or removed. */
function fromNamespaces(caches: Caches): KeySource {
  return keysFrom(caches.namespaces, (old, current) =>
    [old, current].flatMap(each => (each === undefined ? [] : keysInNamespace(caches, 'Integration', each.workspace))),
  );
}

/**
 * Returns the sources for integration keys. An integration is enqueued when its workspace is created or deleted, or
 * when the owner of its namespace changes. An integration is also enqueued when a Subscription is created or deleted in
 * the receiving workspace.
 */
export function integrationSources(caches: Caches): readonly KeySource[] {
  return [
    fromWorkspaces(caches, 'Integration'),
    fromNamespaces(caches),
    keysFrom(caches.Subscription, (old, current) => {
      // After a list, it can be another object with the same name.
      if (old?.metadata.uid === current?.metadata.uid) return [];
      return [old, current].flatMap(each => {
        const key = `${each?.spec.producer}/${each?.spec.integration}`;
        return each && caches.Integration.store.get(key)?.spec.workspace === each.metadata.namespace ? [key] : [];
      });
    }),
  ];
}

const pausedBy = (workspace: AnyObject | undefined) => workspace?.metadata.annotations?.[PAUSED_ANNOTATION];

/**
 * Returns the fields used to decide whether an invitation should be sent. Does not include the result of the last
 * attempt.
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
 * Returns the sources for invitations. The sources yield the keys of integrations. An invitation is enqueued if it
 * might have to be sent, if its Secret or another Secret with the same name was changed or deleted, if its workspace
 * was paused or resumed, or if the limit of its account has changed. An invitation is not enqueued after a failed
 * attempt because it has to wait for the backoff.
 */
export function invitationSources(caches: Caches, policy: LimitPolicy): readonly KeySource[] {
  const mailsOf = (account: Cached<'Account'> | undefined) =>
    account && limitsOf(account.spec, policy).invitationMailsPerDay;
  return [
    // When the limit of an account changes, emails that were waiting for it may be sent.
    keysFrom(caches.Account, (old, current) =>
      old === undefined || current === undefined || mailsOf(old) === mailsOf(current)
        ? []
        : workspacesOf(caches, current.metadata.name).flatMap(name => keysInNamespace(caches, 'Integration', name)),
    ),
    keysFrom(caches.Integration, (old, current) =>
      invitationFields(old) === invitationFields(current) ? [] : keyOfChanged(old, current),
    ),
    keysFrom(caches.invitationSecrets, ownersOf),
    fromFreedNames(caches, 'Integration', invitationSecretName),
    keysFrom(caches.Workspace, (old, current) =>
      isCreatedOrDeleted(old, current) || pausedBy(old) !== pausedBy(current)
        ? keyOfChanged(old, current).flatMap(name => keysInNamespace(caches, 'Integration', name))
        : [],
    ),
    fromNamespaces(caches),
  ];
}
