import { type AnyObject, keyOf } from '../../kube/object.ts';
import type { World } from '../caches/caches.ts';
import type { Sources } from '../caches/watches.ts';
import type { Controller } from '../engine/keyed-controller.ts';

/** The controllers whose statuses say what follows from the routes of a tenant. */
export type Followers = Readonly<
  Record<
    'workspaces' | 'streams' | 'packages' | 'integrations' | 'blocks' | 'subscriptions' | 'activations',
    Pick<Controller, 'enqueue'>
  >
>;

/** Statuses follow the routes of the tenant `name`: of the subscriptions and blocks that changed, or of everything in it. */
export function enqueueFollowers(
  { world, sources, followers }: { readonly world: World; readonly sources: Sources; readonly followers: Followers },
  name: string,
  uids: ReadonlySet<string> | 'all',
): void {
  const enqueue = (kind: keyof Followers, keys: Iterable<string>) => {
    for (const key of keys) followers[kind].enqueue(key, 'background');
  };
  const keysOf = (objects: readonly AnyObject[]) =>
    objects.filter(({ metadata }) => uids === 'all' || uids.has(metadata.uid)).map(({ metadata }) => keyOf(metadata));
  enqueue('subscriptions', keysOf(world.Subscription.store.byIndex('producer', name)));
  enqueue('blocks', keysOf(world.Block.store.byIndex('namespace', name)));
  if (uids !== 'all') return;
  // Those that failed meanwhile would wait for their backoff.
  enqueue('activations', sources.unsettledPairs(name));
  enqueue('workspaces', [name]);
  enqueue('streams', sources.inNamespace('CatalogStream', name));
  enqueue('packages', sources.inNamespace('Package', name));
  enqueue('integrations', sources.inNamespace('Integration', name));
}
