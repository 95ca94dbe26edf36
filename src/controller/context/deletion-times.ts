import type { AnyObject } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Clock } from '../../time/clock.ts';
import type { Caches } from '../caches/caches.ts';

/** Kinds whose finalizer only waits for a limited time. */
const PROTECTED = ['Workspace', 'CatalogStream', 'Package', 'Subscription'] as const;

/**
 * The time after which the time of an object that was not stuck starts again, in milliseconds. In the meantime, another
 * replica may have led. It is longer than a replica pauses after it has released the Lease.
 */
const STUCK_AGAIN_MS = 120_000;

export interface DeletionTimes {
  /** Returns the time since this process detected that the object is being deleted, in milliseconds. */
  readonly deletingForMs: (object: AnyObject) => number;
  /**
   * Returns the time for which a failure or a pause has stopped the deletion, in milliseconds. The time starts with the
   * first call after `noteWaiting`. If the namespace is being deleted, this is the same as `deletingForMs`.
   */
  readonly stuckForMs: (object: AnyObject) => number;
  /** Call this when the deletion waits for something else, such as a stream's remaining events. */
  readonly noteWaiting: (object: AnyObject) => void;
}

/**
 * Records the time at which this process detected that an object is being deleted. We don't want to use the
 * deletionTimestamp here, since it is set by the API server's clock: if this pod's clock was an hour behind, deleting a
 * namespace would take an hour longer. Replicas other than the leader record the time as well.
 */
export function createDeletionTimes(
  caches: { readonly [K in (typeof PROTECTED)[number]]: Pick<Caches[K], 'subscribe'> } & Pick<Caches, 'namespaces'>,
  clock: Pick<Clock, 'nowMs'>,
): DeletionTimes {
  /**
   * The time at which the deletion of an object was detected, by UID. The time is in milliseconds of the monotonic
   * clock.
   */
  const seen = new Map<string, number>();
  /** When an object was stuck for the first time and for the last time, by UID. */
  const stuck = new Map<string, { readonly sinceMs: number; readonly lastMs: number }>();

  function note({ metadata }: AnyObject): number {
    const nowMs = clock.nowMs();
    if (metadata.deletionTimestamp === undefined) return nowMs;
    const sinceMs = seen.get(metadata.uid) ?? nowMs;
    seen.set(metadata.uid, sinceMs);
    return sinceMs;
  }

  for (const { subscribe } of PROTECTED.map(kind => caches[kind] as Pick<Reflector<AnyObject>, 'subscribe'>)) {
    subscribe((_change, _key, old, current) => {
      if (old !== undefined && old.metadata.uid !== current?.metadata.uid) {
        seen.delete(old.metadata.uid);
        stuck.delete(old.metadata.uid);
      }
      if (current !== undefined) note(current);
    });
  }
  const deletingForMs = (object: AnyObject) => clock.nowMs() - note(object);
  return {
    deletingForMs,
    stuckForMs(object) {
      const { uid, namespace = '' } = object.metadata;
      if (caches.namespaces.store.get(namespace)?.deleting) return deletingForMs(object);
      const nowMs = clock.nowMs();
      const { sinceMs = nowMs, lastMs = nowMs } = stuck.get(uid) ?? {};
      const beganMs = nowMs - lastMs > STUCK_AGAIN_MS ? nowMs : sinceMs;
      stuck.set(uid, { sinceMs: beganMs, lastMs: nowMs });
      return nowMs - beganMs;
    },
    noteWaiting: ({ metadata }) => void stuck.delete(metadata.uid),
  };
}
