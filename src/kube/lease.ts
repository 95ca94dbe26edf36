import { INSTANCE_LABEL, STORE_ANNOTATION } from '../api/well-known.ts';
import type { KubeClient } from './client.ts';
import type { AnyObject, ObjectName } from './object.ts';
import { LEASES } from './resource.ts';

/** The name of the Lease of the leading controller. */
export const LEASE_NAME = 'sluice-controller';

/** The `spec` of a Lease in coordination.k8s.io/v1. All times use the MicroTime format. */
export type LeaseSpec = {
  /** The identity of the current holder. Empty or unset once the lease has been released. */
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
};

/**
 * The longest time that a lease is written for. The controller writes 15 s, and `sluice uninstall` 60 s. A longer time
 * was written by hand, and would keep all controllers from leading.
 */
export const LONGEST_LEASE_SECONDS = 60;

/** Returns the time for which a lease is held after it was written, in milliseconds. */
export function heldForMs({ leaseDurationSeconds = 0 }: LeaseSpec): number {
  return Math.min(leaseDurationSeconds, LONGEST_LEASE_SECONDS) * 1_000;
}

export type Lease = {
  readonly uid?: string;
  readonly resourceVersion: string;
  readonly spec: LeaseSpec;
  /** The id of the Redis that the last leader has written to, if known. */
  readonly store?: string | undefined;
  /** The installation of the last leader, if known. */
  readonly instance?: string | undefined;
};

/** The content of a Lease in addition to its spec. */
export type LeaseMarks = {
  readonly labels: Readonly<Record<string, string>>;
  /**
   * Returns the id of the Redis that the leader writes to. While it is unknown, the last one is kept.
   *
   * @param transitions the number of the term, unless the Lease is being created
   */
  readonly store: (transitions?: number) => string | undefined;
};

/**
 * LeaseStore reads and writes a Lease using optimistic concurrency. `create` and `update` reject with a 409 error if
 * another process has changed the Lease.
 */
export type LeaseStore = {
  readonly get: (signal: AbortSignal) => Promise<Lease | undefined>;
  readonly create: (spec: LeaseSpec, signal: AbortSignal) => Promise<Lease>;
  readonly update: (before: Lease, spec: LeaseSpec, signal: AbortSignal) => Promise<Lease>;
};

/**
 * Formats a time as a Kubernetes MicroTime, i.e. RFC 3339 with six decimal places.
 * @param wallMs milliseconds since the epoch
 */
export function formatMicroTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z');
}

type LeaseObject = AnyObject & { readonly spec?: LeaseSpec };

/**
 * Creates a store for a single Lease.
 *
 * @param marks labels and annotations to set with every write. All others are removed
 */
export function createLeaseStore(
  client: Pick<KubeClient, 'get' | 'create' | 'update'>,
  name: ObjectName,
  marks?: LeaseMarks,
): LeaseStore {
  const toLease = ({ metadata, spec = {} }: LeaseObject): Lease => ({
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    spec,
    store: metadata.annotations?.[STORE_ANNOTATION],
    instance: metadata.labels?.[INSTANCE_LABEL],
  });
  const marksOf = (last?: string, transitions?: number): object => {
    if (marks === undefined) return {};
    const store = marks.store(transitions) ?? last;
    return { labels: marks.labels, annotations: store === undefined ? {} : { [STORE_ANNOTATION]: store } };
  };
  return {
    get: async signal => {
      const object = await client.get<LeaseObject>(LEASES, name, { signal, over: 'leases' });
      return object && toLease(object);
    },
    create: async (spec, signal) =>
      toLease(
        await client.create<LeaseObject>(LEASES, name, { metadata: marksOf(), spec }, { signal, over: 'leases' }),
      ),
    update: async ({ uid, resourceVersion, store }, spec, signal) =>
      toLease(
        await client.update<LeaseObject>(
          LEASES,
          name,
          // Without the uid, the API server would create a Lease that was deleted.
          { metadata: { ...marksOf(store, spec.leaseTransitions), uid, resourceVersion }, spec },
          { signal, over: 'leases' },
        ),
      ),
  };
}

/** Returns the labels of the controller's Lease. The installation without a name has an empty instance. */
export function leaseLabels(instance: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': 'sluice', [INSTANCE_LABEL]: instance };
}

/** The Lease of a controller with the same installation name in another namespace. */
export type RivalLease = {
  readonly namespace: string;
  /** Empty if the Lease was released. */
  readonly holder: string;
  /** The id of the Redis that its last leader has written to. */
  readonly store: string | undefined;
};

/** The time to wait for the Leases of all namespaces, in milliseconds. */
const LIST_WITHIN_MS = 5_000;

/**
 * Lists the Leases of controllers with the name `instance` in namespaces other than `namespace`, sorted by namespace.
 * The result is at least as new as the call. A Lease without a label was written by `sluice uninstall`, and is not
 * included.
 */
export async function listRivalLeases(
  client: Pick<KubeClient, 'list'>,
  { instance, namespace }: { readonly instance: string; readonly namespace: string },
  signal: AbortSignal,
): Promise<readonly RivalLease[]> {
  // RBAC can only restrict `list` to a name if the field selector contains it.
  const { items } = await client.list(LEASES, (lease: LeaseObject) => lease, {
    fieldSelector: `metadata.name=${LEASE_NAME}`,
    timeoutMs: LIST_WITHIN_MS,
    over: 'leases',
    signal,
  });
  return items
    .filter(({ metadata }) => metadata.namespace !== namespace && metadata.labels?.[INSTANCE_LABEL] === instance)
    .map(({ metadata, spec }) => ({
      namespace: metadata.namespace ?? '',
      holder: spec?.holderIdentity ?? '',
      store: metadata.annotations?.[STORE_ANNOTATION],
    }))
    .toSorted((a, b) => (a.namespace < b.namespace ? -1 : 1));
}
