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

/** Returns the integrations in a namespace whose workspace label is added or removed. */
function fromNamespaces(caches: Caches): KeySource {
  return keysFrom(caches.namespaces, (old, current) =>
    [old, current].flatMap(each => (each === undefined ? [] : keysInNamespace(caches, 'Integration', each.workspace))),
  );
}

/**
 * Returns the sources for integration keys. An integration is enqueued when its workspace is created or deleted, when
 * the owner of its namespace changes, and when a Subscription is created or deleted in the workspace it was granted to.
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

/** Returns the fields that determine whether to send an invitation, excluding the result of the last attempt. */
function invitationFields(integration: Cached<'Integration'> | undefined): string {
  if (integration === undefined) return '';
  const { metadata, spec, status } = integration;
  const { tokenHash, sentAt } = status?.invitation ?? {};
  const accepted = status?.conditions?.find(({ type }) => type === 'Accepted')?.reason;
  const { workspace, declined, revoked } = spec;
  return JSON.stringify([metadata.uid, tokenHash, sentAt, accepted, workspace, declined, revoked]);
}

/**
 * Returns the sources for invitations, keyed by integration. An invitation is enqueued whenever it may need to be sent,
 * when its Secret is changed or deleted, when its workspace is paused or resumed, and when the limit of its account changes. A failed attempt doesn't enqueue
 * it, since it should wait for the backoff.
 */
export function invitationSources(caches: Caches, policy: LimitPolicy): readonly KeySource[] {
  const mailsOf = (account: Cached<'Account'> | undefined) =>
    account && limitsOf(account.spec, policy).invitationMailsPerDay;
  return [
    // Emails that wait for the limit of the account may be sent now.
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
