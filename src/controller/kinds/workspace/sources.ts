import type { Caches } from '../../caches/caches.ts';
import {
  fromNamespaces,
  isCreatedOrDeleted,
  keyOfChanged,
  namespaceOfChanged,
  workspacesOf,
} from '../../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/** Workspaces of a changed account or namespace, and of a namespace where a stream was created or deleted. */
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
