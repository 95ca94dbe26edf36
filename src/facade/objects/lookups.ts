import type { KindName } from '../../api/kinds/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ObjectName } from '../../kube/object.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { type Cached, RESOURCES } from './cached.ts';
import { CALL_WITHIN_MS, refusalOf } from './kube-failures.ts';

/** Least time between two lists for what the caches do not have, of one kind in one namespace. */
const LIST_EVERY_MS = 1_000;
/** Kinds and namespaces that are remembered. */
const MOST_PLACES = 1_000;

interface Place {
  /** When the last list began. */
  readonly beganMs: number;
  readonly ids: Promise<Ids>;
  /** The list after it, once somebody waits for it. */
  next?: Promise<Ids>;
}

/** Whole objects by what was asked for; names of objects where their metadata was enough to tell. */
type Ids = ReadonlyMap<string, object>;

/** Kinds whose public id is of more than their metadata. */
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
  /** Default 1,000. */
  readonly listEveryMs?: number | undefined;
}

function isOfMetadata(kind: KindName, index: string): boolean {
  return index === 'publicId' && !OF_THEIR_SPEC.includes(kind);
}

/** All that is kept of an object that is read when it is asked for: thousands of streams may have 128 KiB each. */
function nameOnly({ metadata: { namespace, name } }: Cached<KindName>): { readonly metadata: ObjectName } {
  return { metadata: { namespace, name } };
}

/**
 * Finds by an index, such as the public id, what the caches do not have yet: what another replica has just made. Each
 * question is answered by a list that began after it was asked; one list for all who ask meanwhile, and at most one a
 * second for each kind, index and namespace, so that guessing costs the API server nothing. Where the id is one of the
 * metadata, only that is listed, and the object that was meant is read by its name.
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
      throw refusalOf(cause);
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
      throw refusalOf(cause);
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
    /** @param index of `indexes`; each of its values belongs to one object */
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
