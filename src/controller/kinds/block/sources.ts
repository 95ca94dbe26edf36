import { type AnyObject, keyOf } from '../../../kube/object.ts';
import type { Reflector } from '../../../kube/reflector.ts';
import { type Caches, targetKey } from '../../caches/caches.ts';
import { fromWorkspaces, isCreatedOrDeleted, keyOfChanged } from '../../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/**
 * Returns the sources for Block keys. A Block is enqueued when its workspace, its integration, or its target is created
 * or deleted. A Block is also enqueued when the finalizer is added to its target.
 */
export function blockSources(caches: Caches): readonly KeySource[] {
  const blocksBy = (index: 'integration' | 'target', entry: string) =>
    caches.Block.store.byIndex(index, entry).map(({ metadata }) => keyOf(metadata));
  return [
    fromWorkspaces(caches, 'Block'),
    keysFrom(caches.Integration, (old, current) =>
      isCreatedOrDeleted(old, current)
        ? keyOfChanged(old, current).flatMap(integration => blocksBy('integration', integration))
        : [],
    ),
    ...(['CatalogStream', 'Package'] as const).map(kind =>
      keysFrom(caches[kind] as Reflector<AnyObject>, (old, current) => {
        const { metadata } = current ?? (old as AnyObject);
        const same = old?.metadata.finalizers?.length === current?.metadata.finalizers?.length;
        if (!isCreatedOrDeleted(old, current) && same) return [];
        return blocksBy('target', targetKey(metadata.namespace ?? '', kind, metadata.name));
      }),
    ),
  ];
}
