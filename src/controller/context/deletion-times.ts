import type { AnyObject } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Clock } from '../../time/clock.ts';
import type { Caches } from '../caches/caches.ts';

/** The kinds with a finalizer. */
const PROTECTED = ['Workspace', 'CatalogStream', 'Package', 'Subscription'] as const;

export interface DeletionTimes {
  /** Returns the time since this process first saw that the object is being deleted, ms. */
  readonly deletingForMs: (object: AnyObject) => number;
}

/**
 * Notes when this process first saw that an object is being deleted. A deletionTimestamp has the API server's clock: a
 * pod whose clock is an hour behind would hold a namespace for an hour. Replicas that do not lead note it, too.
 */
export function createDeletionTimes(
  caches: { readonly [K in (typeof PROTECTED)[number]]: Pick<Caches[K], 'subscribe'> },
  clock: Pick<Clock, 'nowMs'>,
): DeletionTimes {
  /** uid → when its deletion was first seen, ms of the monotonic clock. */
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
