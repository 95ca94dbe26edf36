import type { KindName } from '../api/kinds.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Clock, sleep } from '../kube/clock.ts';
import { type Cached, RESOURCES } from './cached.ts';
import { CALL_WITHIN_MS, refusalOf } from './kube-failures.ts';

/** Least time between two lists for what the caches do not have, of one kind in one namespace. */
const LIST_EVERY_MS = 1_000;
/** Kinds and namespaces that are remembered. */
const MOST_PLACES = 1_000;

interface Place {
  /** When the last list began. */
  readonly beganMs: number;
  readonly ids: Promise<ReadonlyMap<string, object>>;
  /** The list after it, once somebody waits for it. */
  next?: Promise<ReadonlyMap<string, object>>;
}

interface Where {
  readonly kind: KindName;
  readonly index: string;
  readonly namespace: string | undefined;
}

interface LookupOptions {
  readonly client: Pick<KubeClient, 'list'>;
  readonly clock: Clock;
  readonly indexes: { readonly [K in KindName]: Readonly<Record<string, (object: never) => readonly string[]>> };
  readonly keep: <K extends KindName>(object: Cached<K>) => Cached<K>;
  /** Default 1,000. */
  readonly listEveryMs?: number | undefined;
}

/**
 * Finds by an index, such as the public id, what the caches do not have yet: what another replica has just made. Each
 * question is answered by a list that began after it was asked; one list for all who ask meanwhile, and at most one a
 * second for each kind, index and namespace, so that guessing costs the API server nothing.
 */
export function createLookups({ client, clock, indexes, keep, listEveryMs = LIST_EVERY_MS }: LookupOptions) {
  const places = new Map<string, Place>();

  async function listIds({ kind, index, namespace }: Where): Promise<ReadonlyMap<string, object>> {
    const idsOf = indexes[kind][index] as unknown as (object: object) => readonly string[];
    const ids = new Map<string, object>();
    try {
      const options = { namespace, signal: AbortSignal.timeout(CALL_WITHIN_MS) };
      const { items } = await client.list<Cached<KindName>, object>(RESOURCES[kind], keep, options);
      for (const object of items) for (const id of idsOf(object)) ids.set(id, object);
    } catch (cause) {
      throw refusalOf(cause);
    }
    return ids;
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
      return (await ids).get(id) as Cached<K> | undefined;
    },
  };
}
