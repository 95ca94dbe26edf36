import type { SubscriptionSnapshot, TenantSnapshot } from '../../core/routing/snapshot.ts';
import {
  isProtected,
  snapshotOf,
  snapshotOfIntegration,
  snapshotOfSubscription,
} from '../../core/routing/snapshot-of.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { Cached, Caches } from '../caches/caches.ts';

/** Collects the data required for compiling the routes of the workspace `name` from the caches. */
export function gatherTenant(
  caches: Caches,
  isRemoved: (uid: string) => boolean,
  name: string,
  isShort: (account: string) => boolean = () => false,
  fieldsOf: (subscription: Cached<'Subscription'>) => SubscriptionSnapshot['headerFields'] = () => undefined,
): TenantSnapshot {
  const workspace = caches.Workspace.store.get(name);
  // Don't apply objects in a foreign namespace, i.e. one without the label. If a namespace is being deleted, its
  // objects can be removed in any order, so we need to close it first. Otherwise, a Block might disappear before the
  // blocked object.
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
    ...(account === undefined
      ? {}
      : { account: { plan: account.spec.plan, limits: account.spec.limits, short: isShort(account.metadata.name) } }),
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

/** Yields all objects that may affect the routes of the workspace `name`. */
export function* objectsOfTenant(caches: Caches, name: string): Generator<AnyObject> {
  const workspace = caches.Workspace.store.get(name);
  if (workspace !== undefined) yield workspace;
  for (const kind of ['CatalogStream', 'Package', 'Integration', 'Block'] as const) {
    yield* caches[kind].store.byIndex('namespace', name);
  }
  yield* caches.Subscription.store.byIndex('producer', name);
}
