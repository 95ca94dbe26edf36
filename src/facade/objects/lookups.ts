import type { KindName } from '../../api/kinds/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ObjectName } from '../../kube/object.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { type Cached, RESOURCES } from './cached.ts';
import { CALL_WITHIN_MS, kubeRefusal } from './kube-failures.ts';

/** Minimum interval between two lists for missing objects of a kind in a namespace. */
const LIST_EVERY_MS = 1_000;
/** Maximum number of kinds and namespaces kept in memory. */
const MOST_PLACES = 1_000;

interface Place {
  /** Time at which the last list was started. */
  readonly beganMs: number;
  readonly ids: Promise<Ids>;
  /** Next list, if a caller is waiting for it. */
  next?: Promise<Ids>;
}

/** Objects by id. Only contains names where the metadata was sufficient. */
type Ids = ReadonlyMap<string, object>;

/** Kinds whose public id can't be derived from metadata alone. */
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
 * Returns an object that has only a name. Thousands of streams may have 128 KiB each, so this saves a lot of memory.
 */
function nameOnly({ metadata: { namespace, name } }: Cached<KindName>): { readonly metadata: ObjectName } {
  return { metadata: { namespace, name } };
}

/**
 * Finds objects by an index, such as the public id, when they aren't cached yet (another replica may have just created
 * them). Each call uses a list started after it, and waiting calls share a list. There is no more than one list per
 * second for a given kind, index, and namespace, limiting the cost of guessed ids. For ids derived from the metadata,
 * we list only metadata and then read the object by name.
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
