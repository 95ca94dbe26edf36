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

/** Objects without the finalizer are ignored, because a route must not depend on an unprotected object. */
export function isProtected({ metadata }: { readonly metadata: Metadata }): boolean {
  return metadata.finalizers?.includes(FINALIZER) === true;
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
