import type { KindName } from '../../api/kinds/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ObjectName } from '../../kube/object.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { type Cached, RESOURCES } from './cached.ts';
import { CALL_WITHIN_MS, kubeRefusal } from './kube-failures.ts';

/** The minimum interval between two lists for missing objects. It applies to each kind and namespace. */
const LIST_EVERY_MS = 1_000;
/** The maximum number of kinds and namespaces in memory. */
const MOST_PLACES = 1_000;

interface Place {
  /** The time at which the last list was started. */
  readonly beganMs: number;
  readonly ids: Promise<Ids>;
  /** The next list. It is set if a caller is waiting for it. */
  next?: Promise<Ids>;
}

/** The objects by id. They only contain names if the metadata was sufficient. */
type Ids = ReadonlyMap<string, object>;

/** The kinds whose public id is not derived from the metadata alone. */
const OF_THEIR_SPEC: readonly KindName[] = ['Activation', 'Block'];

interface Where {
  readonly kind: KindName;
  readonly index: string;
  readonly namespace: string | undefined;
}

interface LookupOptions {
  readonly client: Pick<KubeClient, 'list' | 'get'>;
  readonly clock: Clock;
  readonly indexes: { readonly [K in KindName]: Readonly<Record<string, (object: never) => readonly string[]>> };
  readonly keep: <K extends KindName>(object: Cached<K>) => Cached<K>;
  /** Defaults to 1,000. */
  readonly listEveryMs?: number | undefined;
}

function isOfMetadata(kind: KindName, index: string): boolean {
  return index === 'publicId' && !OF_THEIR_SPEC.includes(kind);
}

/**
 * Returns an object with only the name. We do this to save memory because thousands of streams may have 128 KiB each.
 */
function nameOnly({ metadata: { namespace, name } }: Cached<KindName>): { readonly metadata: ObjectName } {
  return { metadata: { namespace, name } };
}

/**
 * Finds objects by an index such as the public id if they are not in the cache yet. This is required because another
 * replica may have just created them. Each call uses a list that was started after the call, and waiting calls share a
 * list. There is at most one list per second for each kind, index and namespace, which limits the cost of guessed ids.
 * If the id is derived from the metadata, only the metadata is listed and the object is then read by name.
 */
export function createLookups({ client, clock, indexes, keep, listEveryMs = LIST_EVERY_MS }: LookupOptions) {
  const places = new Map<string, Place>();

  async function listIds({ kind, index, namespace }: Where): Promise<Ids> {
    const idsOf = indexes[kind][index] as unknown as (object: object) => readonly string[];
    const ids = new Map<string, object>();
    try {
      const metadataOnly = isOfMetadata(kind, index);
      const options = { namespace, metadataOnly, signal: AbortSignal.timeout(CALL_WITHIN_MS) };
      const project = metadataOnly ? nameOnly : keep;
      const { items } = await client.list<Cached<KindName>, object>(RESOURCES[kind], project, options);
      for (const object of items) for (const id of idsOf(object)) ids.set(id, object);
    } catch (cause) {
      throw kubeRefusal(cause);
    }
    return ids;
  }

  async function read<K extends KindName>(kind: K, name: ObjectName): Promise<Cached<K> | undefined> {
    try {
      const object = await client.get<Cached<K>>(RESOURCES[kind], name, {
        signal: AbortSignal.timeout(CALL_WITHIN_MS),
      });
      return object === undefined ? undefined : keep(object);
    } catch (cause) {
      throw kubeRefusal(cause);
    }
  }

  function begin(key: string, where: Where): Place['ids'] {
    if (places.size >= MOST_PLACES) places.clear();
    const ids = listIds(where);
    places.set(key, { beganMs: clock.nowMs(), ids });
    return ids;
  }

  async function beginLater(key: string, where: Where, afterMs: number) {
    await sleep(clock, afterMs);
    return begin(key, where);
  }

  return {
    /** @param index is one of `indexes`. Each value must belong to a single object */
    findLive: async <K extends KindName>(
      kind: K,
      id: string,
      namespace?: string,
      index = 'publicId',
    ): Promise<Cached<K> | undefined> => {
      const where = { kind, index, namespace };
      const key = `${kind}/${index}/${namespace ?? ''}`;
      const place = places.get(key);
      const restMs = place === undefined ? 0 : place.beganMs + listEveryMs - clock.nowMs();
      const ids =
        place === undefined || (restMs <= 0 && place.next === undefined)
          ? begin(key, where)
          : (place.next ??= beginLater(key, where, Math.max(0, restMs)));
      const found = (await ids).get(id);
      return found !== undefined && isOfMetadata(kind, index)
        ? read(kind, (found as ReturnType<typeof nameOnly>).metadata)
        : (found as Cached<K> | undefined);
    },
  };
}
