import { type AnyObject, keyOf } from '../../kube/object.ts';
import { inSlices } from '../../time/slices.ts';
import { type Cached, type Caches, pairKeyOf } from '../caches/caches.ts';
import { findCondition } from '../engine/conditions.ts';
import type { Controllers } from '../engine/controllers.ts';

/**
 * Enqueues all objects whose status depends on the routes of the tenant `name`. Can be limited to the given UIDs. There
 * may be 100,000 objects, so this is done in slices.
 */
export async function enqueueFollowers(
  { caches, controllers }: { readonly caches: Caches; readonly controllers: Pick<Controllers, 'enqueue'> },
  name: string,
  uids: ReadonlySet<string> | 'all',
): Promise<void> {
  if (uids !== 'all' && uids.size === 0) return;
  const isMeant = ({ metadata }: AnyObject) => uids === 'all' || uids.has(metadata.uid);
  const inNamespace = (kind: 'Block' | 'CatalogStream' | 'Package' | 'Integration'): Iterable<AnyObject> =>
    caches[kind].store.eachByIndex('namespace', name);
  function* enqueue<T>(controller: string, objects: Iterable<T>, keyFor: (object: T) => string | undefined) {
    for (const object of objects) {
      const key = keyFor(object);
      if (key !== undefined) controllers.enqueue(controller, key, 'background');
      yield;
    }
  }
  const keyIfMeant = (object: AnyObject) => (isMeant(object) ? keyOf(object.metadata) : undefined);
  await inSlices(
    (function* () {
      yield* enqueue('subscription', caches.Subscription.store.eachByIndex('producer', name), keyIfMeant);
      yield* enqueue('block', inNamespace('Block'), keyIfMeant);
      if (uids !== 'all') return;
      // Enqueue the objects of the workspace, because those that have failed in the meantime would wait for their
      // backoff.
      yield* enqueue('activation', caches.Activation.store.eachByIndex('namespace', name), unsettledPair);
      yield* enqueue('workspace', [name], key => key);
      yield* enqueue('catalogstream', inNamespace('CatalogStream'), keyIfMeant);
      yield* enqueue('package', inNamespace('Package'), keyIfMeant);
      yield* enqueue('integration', inNamespace('Integration'), keyIfMeant);
    })(),
  );
}

/** Returns the pair of an Activation whose current generation has not been applied. */
function unsettledPair(activation: Cached<'Activation'>): string | undefined {
  const ready = findCondition(activation.status?.conditions, 'Ready');
  const isSettled = ready?.status === 'True' && ready.observedGeneration === activation.metadata.generation;
  return isSettled ? undefined : pairKeyOf(activation);
}
