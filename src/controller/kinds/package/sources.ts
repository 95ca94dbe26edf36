import { keyOf } from '../../../kube/object.ts';
import type { Caches } from '../../caches/caches.ts';
import { fromWorkspaces, isCreatedOrDeleted, keyOfChanged } from '../../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/**
 * Returns the sources for package keys. A package is enqueued when its workspace or one of its streams is created or
 * deleted. A package is also enqueued when a Block referring to it is created, deleted, or marked for deletion.
 */
export function packageSources(caches: Caches): readonly KeySource[] {
  const withStream = (stream: string) =>
    caches.Package.store.byIndex('stream', stream).map(({ metadata }) => keyOf(metadata));
  return [
    fromWorkspaces(caches, 'Package'),
    keysFrom(caches.CatalogStream, (old, current) =>
      isCreatedOrDeleted(old, current) ? keyOfChanged(old, current).flatMap(withStream) : [],
    ),
    keysFrom(caches.Block, (old, current) => {
      const block = current ?? old;
      const same = old?.metadata.deletionTimestamp === current?.metadata.deletionTimestamp;
      if (block?.spec.target.kind !== 'Package' || (!isCreatedOrDeleted(old, current) && same)) return [];
      return [`${block.metadata.namespace}/${block.spec.target.name}`];
    }),
  ];
}
