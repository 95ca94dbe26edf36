import type { AnyObject } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Clock } from '../../time/clock.ts';
import type { Caches } from '../caches/caches.ts';

/** Kinds whose finalizer only waits for a limited time. */
const PROTECTED = ['Workspace', 'CatalogStream', 'Package', 'Subscription'] as const;

export interface DeletionTimes {
  /** Returns how many milliseconds ago this process detected that the object is being deleted. */
  readonly deletingForMs: (object: AnyObject) => number;
}

/**
 * Records the time at which this process detected that an object is being deleted. We don't want to use the
 * deletionTimestamp here, since it is set by the API server's clock: if this pod's clock was an hour behind, deleting a
 * namespace would take an hour longer. Replicas other than the leader record the time as well.
 */
export function createDeletionTimes(
  caches: { readonly [K in (typeof PROTECTED)[number]]: Pick<Caches[K], 'subscribe'> },
  clock: Pick<Clock, 'nowMs'>,
): DeletionTimes {
  /**
   * The time at which the deletion of an object was detected, by UID. The time is in milliseconds of the monotonic
   * clock.
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
