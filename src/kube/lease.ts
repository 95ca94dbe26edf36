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

export type Lease = { readonly resourceVersion: string; readonly spec: LeaseSpec };

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

export function createLeaseStore(client: Pick<KubeClient, 'get' | 'create' | 'update'>, name: ObjectName): LeaseStore {
  type LeaseObject = AnyObject & { readonly spec?: LeaseSpec };
  const toLease = ({ metadata, spec = {} }: LeaseObject): Lease => ({
    resourceVersion: metadata.resourceVersion,
    spec,
  });
  return {
    get: async signal => {
      const object = await client.get<LeaseObject>(LEASES, name, { signal, over: 'leases' });
      return object && toLease(object);
    },
    create: async (spec, signal) =>
      toLease(await client.create<LeaseObject>(LEASES, name, { spec }, { signal, over: 'leases' })),
    update: async ({ resourceVersion }, spec, signal) =>
      toLease(
        await client.update<LeaseObject>(
          LEASES,
          name,
          { metadata: { resourceVersion }, spec },
          { signal, over: 'leases' },
        ),
      ),
  };
}
