import { PAUSED_ANNOTATION } from '../../../api/well-known.ts';
import type { AnyObject } from '../../../kube/object.ts';
import type { Cached, Caches } from '../../caches/caches.ts';
import {
  fromWorkspaces,
  isCreatedOrDeleted,
  keyOfChanged,
  keysInNamespace,
  ownersOf,
} from '../../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/** Returns the integrations in a namespace when the label of its workspace is added or removed. */
function fromNamespaces(caches: Caches): KeySource {
  return keysFrom(caches.namespaces, (old, current) =>
    [old, current].flatMap(each => (each === undefined ? [] : keysInNamespace(caches, 'Integration', each.workspace))),
  );
}

/**
 * Returns the sources for the keys of integrations. An integration is enqueued when its workspace is created or
 * deleted, or when the owner of its namespace changes. It is also enqueued when a Subscription in the workspace that it
 * was granted to is created or deleted.
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
 * Returns the fields that determine whether an invitation should be sent. The result of the last attempt is not
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
 * Returns the sources for the invitations, by the key of the integration. An invitation is enqueued when it may need to
 * be sent, and when its Secret is changed or deleted. It is also enqueued when its workspace is paused or resumed. It
 * is not enqueued when an attempt fails, because it must wait for the backoff.
 */
export function invitationSources(caches: Caches): readonly KeySource[] {
  return [
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
