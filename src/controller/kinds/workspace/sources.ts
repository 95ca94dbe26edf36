import type { Caches } from '../../caches/caches.ts';
import {
  fromNamespaces,
  isCreatedOrDeleted,
  keyOfChanged,
  namespaceOfChanged,
  workspacesOf,
} from '../../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/**
 * Returns the sources for workspace keys. A workspace is enqueued when its account or its namespace changes. A
 * workspace is also enqueued when a stream is created or deleted in its namespace.
 */
export function workspaceSources(caches: Caches): readonly KeySource[] {
  return [
    fromNamespaces(caches),
    keysFrom(caches.Account, (old, current) =>
      keyOfChanged(old, current).flatMap(account => workspacesOf(caches, account)),
    ),
    keysFrom(caches.CatalogStream, (old, current) =>
      isCreatedOrDeleted(old, current) ? namespaceOfChanged(old, current) : [],
    ),
  ];
}
