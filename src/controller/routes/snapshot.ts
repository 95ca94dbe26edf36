import type { SubscriptionSnapshot, TenantSnapshot } from '../../core/routing/snapshot.ts';
import {
  isProtected,
  snapshotOf,
  snapshotOfIntegration,
  snapshotOfSubscription,
} from '../../core/routing/snapshot-of.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { Cached, Caches } from '../caches/caches.ts';

/** Collects all objects from the caches that are used to compile the routes of the workspace `name`. */
export function gatherTenant(
  caches: Caches,
  isRemoved: (uid: string) => boolean,
  name: string,
  isShort: (account: string) => boolean = () => false,
  fieldsOf: (subscription: Cached<'Subscription'>) => SubscriptionSnapshot['headerFields'] = () => undefined,
): TenantSnapshot {
  const workspace = caches.Workspace.store.get(name);
  // Objects in a foreign namespace, which does not have the label, are not applied. If a namespace is being deleted,
  // its objects are removed in any order. We close it first, because a Block could otherwise be removed before the
  // object that it blocks.
  const home = caches.namespaces.store.get(name);
  const adopted = home?.workspace === name && !home.deleting;
  const deleting = workspace?.metadata.deletionTimestamp !== undefined;
  const open = workspace !== undefined && adopted && !deleting && isProtected(workspace);
  const account = workspace === undefined ? undefined : caches.Account.store.get(workspace.spec.account);
  const of = <P>(kind: { store: { byIndex: (index: string, entry: string) => readonly P[] } }, index = 'namespace') =>
    kind.store.byIndex(index, name);
  return {
    name,
    ...(open ? { workspace: { spec: workspace.spec } } : {}),
    ...(account === undefined ? {} : { account: { plan: account.spec.plan, short: isShort(account.metadata.name) } }),
    secretKeys: of(caches.ingressKeys).flatMap(({ sha256 }) => (sha256 === undefined ? [] : [sha256])),
    streams: of(caches.CatalogStream)
      .filter(object => isProtected(object) && !isRemoved(object.metadata.uid))
      .map(snapshotOf),
    packages: of(caches.Package).map(snapshotOf),
    blocks: of(caches.Block).map(snapshotOf),
    integrations: of(caches.Integration).map(snapshotOfIntegration),
    subscriptions: of(caches.Subscription, 'producer')
      .filter(isProtected)
      .map(object => {
        const headerFields = fieldsOf(object);
        const snapshot = snapshotOfSubscription(object);
        return headerFields === undefined ? snapshot : { ...snapshot, headerFields };
      }),
  };
}

/** Returns all objects that can affect the routes of the workspace `name`. */
export function* objectsOfTenant(caches: Caches, name: string): Generator<AnyObject> {
  const workspace = caches.Workspace.store.get(name);
  if (workspace !== undefined) yield workspace;
  for (const kind of ['CatalogStream', 'Package', 'Integration', 'Block'] as const) {
    yield* caches[kind].store.byIndex('namespace', name);
  }
  yield* caches.Subscription.store.byIndex('producer', name);
}
