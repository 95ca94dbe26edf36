import { type Cached, type Caches, pairKey } from '../caches/caches.ts';
import { isOpen } from '../kinds/activation/open-gates.ts';
import type { Difference } from './drift.ts';

export interface StaleCachesDeps {
  readonly caches: Pick<Caches, 'Activation'>;
  /** Lists objects from the quorum: either all objects used for routes and accounts, or the activations. */
  readonly relist: (what: 'routes' | 'activations') => Promise<void>;
  /** Uses a quorum read to get the objects of a pair. */
  readonly readPair: (
    namespace: string,
    integration: string,
    groupKey: string,
  ) => Promise<readonly Cached<'Activation'>[]>;
}

/** The maximum number of pairs to read individually. With more than this, we list all activations instead. */
const MOST_PAIRS_READ = 20;

/**
 * Filters out differences caused by a stale activation cache. If the cache is stale, the activations are listed again.
 */
export async function withoutStale(
  { caches, relist, readPair }: StaleCachesDeps,
  name: string,
  differences: readonly Difference[],
): Promise<Difference[]> {
  const removing = differences.filter(({ removes }) => removes);
  const pairs = removing.flatMap(({ pair }) => pair ?? []);
  let stale = pairs.length < removing.length || pairs.length > MOST_PAIRS_READ;
  if (!stale) {
    const actual = await Promise.all(pairs.map(({ integration, groupKey }) => readPair(name, integration, groupKey)));
    stale = actual.some(isOpen);
  }
  if (!stale) return [...differences];
  await relist('activations');
  return differences.filter(({ removes, pair }) => {
    if (!removes || pair === undefined) return true;
    return !isOpen(caches.Activation.store.byIndex('pair', pairKey(name, pair.integration, pair.groupKey)));
  });
}
