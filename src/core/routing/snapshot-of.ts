import type { IntegrationSpec, IntegrationStatus } from '../../api/kinds/integration.ts';
import type { SubscriptionSpec, SubscriptionStatus } from '../../api/kinds/subscription.ts';
import { FINALIZER } from '../../api/well-known.ts';
import type { IntegrationSnapshot, SnapshotMeta, SubscriptionSnapshot } from './snapshot.ts';

interface Metadata {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid: string;
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly finalizers?: readonly string[] | undefined;
}

/** A cached custom resource. */
interface CachedObject<Spec, Status = unknown> {
  readonly metadata: Metadata;
  readonly spec: Spec;
  readonly status?: Status | undefined;
}

/**
 * Returns true if the object has the finalizer, or had it before. Other objects are ignored, because a route must not
 * depend on an unprotected object.
 *
 * Clients which replace an object, such as `kubectl replace`, remove its finalizers. Until the controller has added the
 * finalizer again, its route must not be closed. Only objects with the finalizer are given a public id in their status.
 */
export function isProtected({ metadata, status }: Pick<CachedObject<unknown>, 'metadata' | 'status'>): boolean {
  if (metadata.finalizers?.includes(FINALIZER) === true) return true;
  const { publicId } = (status ?? {}) as { readonly publicId?: string | undefined };
  return publicId !== undefined && metadata.deletionTimestamp === undefined;
}

function msOf(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time);
}

/** Converts a stream, a package, or a block. We don't need their statuses to make any decisions. */
export function snapshotOf<Spec>({ metadata, spec }: CachedObject<Spec>): SnapshotMeta & { readonly spec: Spec } {
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    uid: metadata.uid,
    createdMs: msOf(metadata.creationTimestamp) ?? 0,
    deleting: metadata.deletionTimestamp !== undefined,
    spec,
  };
}

export function snapshotOfIntegration(object: CachedObject<IntegrationSpec, IntegrationStatus>): IntegrationSnapshot {
  const expiresMs = msOf(object.status?.invitation?.expiresAt);
  const accepted = object.status?.conditions?.find(({ type }) => type === 'Accepted');
  const acceptedMs = accepted?.status === 'True' ? msOf(accepted.lastTransitionTime) : undefined;
  return {
    ...snapshotOf(object),
    ...(expiresMs === undefined ? {} : { expiresMs }),
    ...(acceptedMs === undefined ? {} : { acceptedMs }),
  };
}

export function snapshotOfSubscription(
  object: CachedObject<SubscriptionSpec, SubscriptionStatus>,
): SubscriptionSnapshot {
  const admittedMs = msOf(object.status?.admittedAt);
  const rotatedMs = msOf(object.status?.signing?.rotatedAt);
  const { salt, version, key, previousKey } = object.status?.signing ?? {};
  const disabledMs = msOf(object.status?.endpoint?.disabledAt);
  return {
    ...snapshotOf(object),
    ...(admittedMs === undefined ? {} : { admittedMs }),
    ...(salt === undefined ? {} : { salt }),
    ...(salt === undefined && version === undefined ? {} : { signed: { version, key, previousKey } }),
    ...(rotatedMs === undefined ? {} : { rotatedMs }),
    ...(disabledMs === undefined ? {} : { disabledMs }),
  };
}
