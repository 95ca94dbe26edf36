import { type Refusal, refuseBecause } from '../../http/refusal.ts';
import type { Cached } from './cached.ts';
import type { Caches } from './caches.ts';

/** Kinds of a producer's workspace whose public id is a hash of their name. */
type OwnedKind = 'CatalogStream' | 'Package' | 'Integration';

/** Readable name of each kind. */
const CALLED: Record<OwnedKind, string> = {
  CatalogStream: 'stream',
  Package: 'package',
  Integration: 'integration',
};

/** Returns a 404 that names the kind. */
export function unknownObject(kind: OwnedKind): Refusal {
  return refuseBecause('unknown_resource', `This workspace has no such ${CALLED[kind]}.`);
}

/** Finds an object by public id in one workspace, even if another replica has just created it. @throws Refusal 404 */
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
