import { AsyncLocalStorage } from 'node:async_hooks';
import type { KindName } from '../../api/kinds/kinds.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { resourceOf } from '../../kube/resource.ts';
import { createLocks } from '../../time/locks.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import type { Cached } from './cached.ts';
import { callLimits, kubeRefusal } from './kube-failures.ts';

/** The maximum number of concurrent lookups for a kind, for each namespace or for the whole cluster. */
const LANES = 4;

/**
 * The indexes that the API server can use to select objects, including the field for each index. Each value belongs to
 * a single REST object.
 */
const FIELDS = { publicId: 'status.publicId', tokenHash: 'status.invitation.tokenHash' } as const;

export type LookupIndex = keyof typeof FIELDS;

interface LookupOptions {
  readonly client: Pick<KubeClient, 'list'>;
  readonly indexes: { readonly [K in KindName]: Readonly<Record<string, (object: never) => readonly string[]>> };
  readonly keep: <K extends KindName>(object: Cached<K>) => Cached<K>;
}

/**
 * Looks up objects that are not in the cache using an index (such as the public id). Another replica may just have
 * created such an object. The API server uses a field of the status to select the object. This field is set by the
 * controller before the call that has created the object gets its response. Looking up a value that does not exist is
 * cheap, because the API server uses its own cache and returns an empty list.
 *
 * Each call uses a list that was started after the call. Concurrent calls for the same value share a list. There are at
 * most `LANES` lists for a kind and namespace at a time.
 */
export function createLookups({ client, indexes, keep }: LookupOptions) {
  const flight = createSingleFlight<readonly Cached<KindName>[]>();
  const lanes = createLocks();
  let calls = 0;

  async function list(kind: KindName, namespace: string | undefined, fieldSelector: string) {
    try {
      // A limit can't be used here, because the API server would then read all objects from etcd.
      const options = { namespace, fieldSelector, limit: 0, ...callLimits() };
      const { items } = await client.list<Cached<KindName>, Cached<KindName>>(resourceOf(kind), keep, options);
      return items;
    } catch (cause) {
      // The CustomResourceDefinition is from an older version, which does not have this selectable field yet.
      throw isKubeError(cause, 400) ? new Refusal('unavailable', { cause }) : kubeRefusal(cause);
    }
  }

  return {
    findLive: async <K extends KindName>(
      kind: K,
      value: string,
      namespace?: string,
      index: LookupIndex = 'publicId',
    ): Promise<Cached<K> | undefined> => {
      const place = `${kind}/${index}/${namespace ?? ''}`;
      const found = await flight(`${place}/${value}`, () =>
        lanes.exclusively(`${place}/${calls++ % LANES}`, () => list(kind, namespace, `${FIELDS[index]}=${value}`)),
      );
      const valuesOf = indexes[kind][index] as unknown as (object: object) => readonly string[];
      return found.find(object => valuesOf(object).includes(value)) as Cached<K> | undefined;
    },
  };
}

const charges = new AsyncLocalStorage<() => void>();

/**
 * Runs a call that pays for each id or name that has to be looked up on the API server.
 *
 * @param charge charges a lookup to the caller. @throws Refusal 429
 */
export function payForLookups<T>(charge: () => void, run: () => Promise<T>): Promise<T> {
  return charges.run(charge, run);
}

/** Charges a lookup to the current call. @throws Refusal 429. Throws an Error outside of a call, which can't pay */
export function chargeLookup(): void {
  const charge = charges.getStore();
  if (charge === undefined) throw new Error('An object was looked up outside of a call.');
  charge();
}
