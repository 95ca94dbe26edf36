import { type Refusal, refuseBecause } from '../../http/refusal.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';

/** Kinds in a producer workspace whose public id is a hash of the name. */
type OwnedKind = 'CatalogStream' | 'Package' | 'Integration';

/** Readable name for each kind. */
const CALLED: Record<OwnedKind, string> = {
  CatalogStream: 'stream',
  Package: 'package',
  Integration: 'integration',
};

/** Returns a 404 that includes the kind name. */
export function unknownObject(kind: OwnedKind): Refusal {
  return refuseBecause('unknown_resource', `The workspace does not have this ${CALLED[kind]}.`);
}

/**
 * Looks up an object in a workspace by its public id even if it was just created by another replica. @throws Refusal
 * 404
 */
export async function findOwned<K extends OwnedKind>(
  caches: Pick<Caches, 'find'>,
  kind: K,
  namespace: string,
  id: string,
): Promise<Cached<K>> {
  const object = await caches.find(kind, id, namespace);
  if (object === undefined) throw unknownObject(kind);
  return object;
}
