import { type AnyObject, keyOf } from '../../kube/object.ts';
import type { Caches } from '../caches/caches.ts';
import type { Watches } from '../caches/watches.ts';
import type { Controllers } from '../engine/controllers.ts';

/** Enqueues the objects whose statuses depend on the routes of tenant `name`: those with the given UIDs, or all. */
export function enqueueFollowers(
  deps: { readonly caches: Caches; readonly sources: Watches; readonly controllers: Pick<Controllers, 'enqueue'> },
  name: string,
  uids: ReadonlySet<string> | 'all',
): void {
  const { caches, sources, controllers } = deps;
  const enqueue = (controller: string, keys: Iterable<string>) => {
    for (const key of keys) controllers.enqueue(controller, key, 'background');
  };
  const keysOf = (objects: readonly AnyObject[]) =>
    objects.filter(({ metadata }) => uids === 'all' || uids.has(metadata.uid)).map(({ metadata }) => keyOf(metadata));
  enqueue('subscription', keysOf(caches.Subscription.store.byIndex('producer', name)));
  enqueue('block', keysOf(caches.Block.store.byIndex('namespace', name)));
  if (uids !== 'all') return;
  // Those that failed meanwhile would wait for their backoff.
  enqueue('activation', sources.unsettledPairs(name));
  enqueue('workspace', [name]);
  enqueue('catalogstream', sources.inNamespace('CatalogStream', name));
  enqueue('package', sources.inNamespace('Package', name));
  enqueue('integration', sources.inNamespace('Integration', name));
}
