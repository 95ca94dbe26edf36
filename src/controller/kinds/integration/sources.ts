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

/** Integrations of a namespace that got or lost its workspace. */
function fromNamespaces(caches: Caches): KeySource {
  return keysFrom(caches.namespaces, (old, current) =>
    [old, current].flatMap(each => (each === undefined ? [] : keysInNamespace(caches, 'Integration', each.workspace))),
  );
}

/**
 * Integrations of a workspace that was created or deleted; of a namespace whose owner changed; whose granted workspace
 * starts or stops to use them.
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

/** Returns the fields that decide whether to send an invitation, without the result of the last try. */
function invitationFields(integration: Cached<'Integration'> | undefined): string {
  if (integration === undefined) return '';
  const { metadata, spec, status } = integration;
  const { tokenHash, sentAt } = status?.invitation ?? {};
  const accepted = status?.conditions?.find(({ type }) => type === 'Accepted')?.reason;
  const { workspace, declined, revoked } = spec;
  return JSON.stringify([metadata.uid, tokenHash, sentAt, accepted, workspace, declined, revoked]);
}

/**
 * Invitations, by key of their integration: those that the controller might need to send, whose Secret was changed or
 * deleted, or whose workspace was paused or resumed. Not those that failed again: they wait for their backoff.
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
