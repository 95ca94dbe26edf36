import type { AnyObject } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Clock } from '../../time/clock.ts';
import type { Caches } from '../caches/caches.ts';

/** The kinds that have a finalizer. */
const PROTECTED = ['Workspace', 'CatalogStream', 'Package', 'Subscription'] as const;

export interface DeletionTimes {
  /** Returns the time since this process first saw that the object is being deleted, in milliseconds. */
  readonly deletingForMs: (object: AnyObject) => number;
}

/**
 * Records when this process first saw that an object is being deleted. We do not use the deletionTimestamp because it
 * is set by the clock of the API server. If the clock of this pod was an hour behind, the deletion of a namespace would
 * be delayed by an hour. The time is also recorded on replicas that are not the leader.
 */
export function createDeletionTimes(
  caches: { readonly [K in (typeof PROTECTED)[number]]: Pick<Caches[K], 'subscribe'> },
  clock: Pick<Clock, 'nowMs'>,
): DeletionTimes {
  /**
   * The time when the deletion of an object was first seen, by uid. The time is in milliseconds of the monotonic clock.
   */
  const seen = new Map<string, number>();

  function note({ metadata }: AnyObject): number {
    const nowMs = clock.nowMs();
    if (metadata.deletionTimestamp === undefined) return nowMs;
    const sinceMs = seen.get(metadata.uid) ?? nowMs;
    seen.set(metadata.uid, sinceMs);
    return sinceMs;
  }

  for (const { subscribe } of PROTECTED.map(kind => caches[kind] as Pick<Reflector<AnyObject>, 'subscribe'>)) {
    subscribe((_change, _key, old, current) => {
      if (old !== undefined && old.metadata.uid !== current?.metadata.uid) seen.delete(old.metadata.uid);
      if (current !== undefined) note(current);
    });
  }
  return { deletingForMs: object => clock.nowMs() - note(object) };
}
