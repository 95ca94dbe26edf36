import type { AnyObject } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Clock } from '../../time/clock.ts';
import type { World } from '../caches/caches.ts';

/** The kinds with a finalizer. */
const PROTECTED = ['Workspace', 'CatalogStream', 'Package', 'Subscription'] as const;

export interface DeletionTimes {
  /** For how long the object has been on its way out, as far as this process saw it, ms. */
  readonly deletingForMs: (object: AnyObject) => number;
}

/**
 * Notes when this process first saw that an object is being deleted. A deletionTimestamp is of the API server's clock:
 * compared with a pod's, an hour behind, it would hold a namespace for an hour. A replica that does not lead notes it, too.
 */
export function createDeletionTimes(
  world: { readonly [K in (typeof PROTECTED)[number]]: Pick<World[K], 'subscribe'> },
  clock: Pick<Clock, 'nowMs'>,
): DeletionTimes {
  /** uid → when it was first seen on its way out, ms of the monotonic clock. */
  const seen = new Map<string, number>();

  function note({ metadata }: AnyObject): number {
    const nowMs = clock.nowMs();
    if (metadata.deletionTimestamp === undefined) return nowMs;
    const sinceMs = seen.get(metadata.uid) ?? nowMs;
    seen.set(metadata.uid, sinceMs);
    return sinceMs;
  }

  for (const { subscribe } of PROTECTED.map(kind => world[kind] as Pick<Reflector<AnyObject>, 'subscribe'>)) {
    subscribe((_change, _key, old, current) => {
      if (old !== undefined && old.metadata.uid !== current?.metadata.uid) seen.delete(old.metadata.uid);
      if (current !== undefined) note(current);
    });
  }
  return { deletingForMs: object => clock.nowMs() - note(object) };
}
