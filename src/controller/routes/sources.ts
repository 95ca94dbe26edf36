import type { AnyObject } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Caches } from '../caches/caches.ts';
import { fromNamespaces, keyOfChanged, namespaceOfChanged, workspacesOf } from '../caches/related-keys.ts';
import { type KeySource, keysFrom } from '../engine/keyed-controller.ts';

/**
 * Returns true if the spec and the finalizers are the same in both versions of an object. No other change can affect
 * the routes. After a list, the versions can be those of two objects with the same name.
 */
function isSame(old: AnyObject | undefined, current: AnyObject | undefined): boolean {
  return (
    old?.metadata.uid === current?.metadata.uid &&
    old?.metadata.generation === current?.metadata.generation &&
    old?.metadata.finalizers?.length === current?.metadata.finalizers?.length
  );
}

/** Returns the sources for tenant keys. A tenant is enqueued when an object used in its routes changes. */
export function routeSources(caches: Caches): readonly KeySource[] {
  return [
    fromNamespaces(caches),
    keysFrom(caches.Workspace, keyOfChanged),
    keysFrom(caches.Account, (old, current) =>
      old?.spec.plan === current?.spec.plan &&
      old?.spec.limits?.eventsPerSecond === current?.spec.limits?.eventsPerSecond &&
      old?.spec.limits?.storedBytes === current?.spec.limits?.storedBytes
        ? []
        : keyOfChanged(old, current).flatMap(account => workspacesOf(caches, account)),
    ),
    ...[caches.CatalogStream, caches.Package, caches.Integration, caches.Block].map(kind =>
      keysFrom(kind as Reflector<AnyObject>, (old, current) =>
        isSame(old, current) ? [] : namespaceOfChanged(old, current),
      ),
    ),
    keysFrom(caches.Subscription, (old, current) =>
      isSame(old, current) &&
      old?.status?.signing?.salt === current?.status?.signing?.salt &&
      old?.status?.signing?.rotatedAt === current?.status?.signing?.rotatedAt &&
      old?.status?.signing?.key === current?.status?.signing?.key &&
      old?.status?.signing?.previousKey === current?.status?.signing?.previousKey &&
      old?.status?.endpoint?.disabledAt === current?.status?.endpoint?.disabledAt
        ? []
        : [old, current].flatMap(each => (each === undefined ? [] : [each.spec.producer])),
    ),
    keysFrom(caches.ingressKeys, (old, current) =>
      [old, current].flatMap(each => (each === undefined ? [] : [each.namespace])),
    ),
    // Ignore changes to Secrets that aren't used by any header.
    keysFrom(caches.headerSecrets, (old, current) =>
      caches.Subscription.store.byIndex('secret', (current ?? old)?.key ?? '').map(({ spec }) => spec.producer),
    ),
  ];
}
