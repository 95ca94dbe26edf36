import { type AnyObject, keyOf } from '../../kube/object.ts';
import { type Caches, pairKeyOf } from '../caches/caches.ts';
import { keysInNamespace } from '../caches/related-keys.ts';
import { findCondition } from '../engine/conditions.ts';
import type { Controllers } from '../engine/controllers.ts';

/** Enqueues all objects whose status depends on the routes of the tenant `name`. Can be limited to the given UIDs. */
export function enqueueFollowers(
  { caches, controllers }: { readonly caches: Caches; readonly controllers: Pick<Controllers, 'enqueue'> },
  name: string,
  uids: ReadonlySet<string> | 'all',
): void {
  const enqueue = (controller: string, keys: Iterable<string>) => {
    for (const key of keys) controllers.enqueue(controller, key, 'background');
  };
  const keysOf = (objects: readonly AnyObject[]) =>
    objects.filter(({ metadata }) => uids === 'all' || uids.has(metadata.uid)).map(({ metadata }) => keyOf(metadata));
  enqueue('subscription', keysOf(caches.Subscription.store.byIndex('producer', name)));
  enqueue('block', keysOf(caches.Block.store.byIndex('namespace', name)));
  if (uids !== 'all') return;
  // Otherwise, objects that have failed in the meantime would have to wait for their backoff.
  enqueue('activation', unsettledPairs(caches, name));
  enqueue('workspace', [name]);
  enqueue('catalogstream', keysInNamespace(caches, 'CatalogStream', name));
  enqueue('package', keysInNamespace(caches, 'Package', name));
  enqueue('integration', keysInNamespace(caches, 'Integration', name));
}

/** Returns all pairs in a namespace with an Activation whose current generation has not been applied. */
function unsettledPairs(caches: Caches, namespace: string): string[] {
  return caches.Activation.store.byIndex('namespace', namespace).flatMap(activation => {
    const ready = findCondition(activation.status?.conditions, 'Ready');
    const settled = ready?.status === 'True' && ready.observedGeneration === activation.metadata.generation;
    return settled ? [] : [pairKeyOf(activation)];
  });
}
