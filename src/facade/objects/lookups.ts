import type { KindName } from '../../api/kinds/kinds.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { createLocks } from '../../time/locks.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import { type Cached, RESOURCES } from './cached.ts';
import { CALL_WITHIN_MS, kubeRefusal } from './kube-failures.ts';

/** Maximum number of simultaneous lookups of a kind in a namespace, or in the whole cluster. */
const LANES = 4;

/** Indexes that the API server can select by, with the field of each. Each value belongs to one REST object. */
const FIELDS = { publicId: 'status.publicId', tokenHash: 'status.invitation.tokenHash' } as const;

export type LookupIndex = keyof typeof FIELDS;

interface LookupOptions {
  readonly client: Pick<KubeClient, 'list'>;
  readonly indexes: { readonly [K in KindName]: Readonly<Record<string, (object: never) => readonly string[]>> };
  readonly keep: <K extends KindName>(object: Cached<K>) => Cached<K>;
}

/**
 * Finds objects by an index, such as the public id, when they aren't cached yet (another replica may have just created
 * them). The API server selects the object by a field of its status, which the controller has set before the call that
 * created the object was answered. Lookups of values that don't exist are cheap for this reason, since the API server
 * answers from its own cache, and sends nothing.
 *
 * Each call uses a list started after it. Simultaneous calls for the same value share a list, and there are no more than
 * `LANES` lists at a time for a kind and namespace.
 */
export function createLookups({ client, indexes, keep }: LookupOptions) {
  const flight = createSingleFlight<readonly Cached<KindName>[]>();
  const lanes = createLocks();
  let calls = 0;

  async function list(kind: KindName, namespace: string | undefined, fieldSelector: string) {
    try {
      // Without a limit, as the API server would otherwise read all objects from etcd.
      const options = { namespace, fieldSelector, limit: 0, signal: AbortSignal.timeout(CALL_WITHIN_MS) };
      const { items } = await client.list<Cached<KindName>, Cached<KindName>>(RESOURCES[kind], keep, options);
      return items;
    } catch (cause) {
      // The field can't be selected by yet, because the CustomResourceDefinition is that of an older version.
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
