import type { Reflector } from './reflector.ts';

/**
 * Counts the objects of a cache by namespace. Counts follow the changes of the cache, so reading one takes the same time
 * whether there are ten objects or 100,000. Call this before the cache is filled.
 *
 * @returns a function from a namespace to its number of objects
 */
export function countByNamespace(reflector: Pick<Reflector<unknown>, 'subscribe'>): (namespace: string) => number {
  const counts = new Map<string, number>();
  reflector.subscribe((change, key) => {
    if (change === 'updated') return;
    const namespace = key.slice(0, Math.max(0, key.indexOf('/')));
    const count = (counts.get(namespace) ?? 0) + (change === 'added' ? 1 : -1);
    if (count > 0) counts.set(namespace, count);
    else counts.delete(namespace);
  });
  return namespace => counts.get(namespace) ?? 0;
}
