import type { SubscriptionSnapshot, TenantSnapshot } from '../../core/routing/snapshot.ts';
import {
  isProtected,
  snapshotOf,
  snapshotOfIntegration,
  snapshotOfSubscription,
} from '../../core/routing/snapshot-of.ts';
import { mapSteps, type Steps } from '../../core/routing/steps.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { Cached, Caches } from '../caches/caches.ts';
import type { IsRecentlyGone } from './recently-gone.ts';

/**
 * Collects the data required for compiling the routes of the workspace `name` from the caches. Includes all objects
 * that are in the caches at the time of this call, even if they change before the last piece.
 */
export function gatherTenant(
  caches: Caches,
  isRemoved: (uid: string) => boolean,
  name: string,
  isShort: (account: string) => boolean = () => false,
  fieldsOf: (subscription: Cached<'Subscription'>) => SubscriptionSnapshot['headerFields'] = () => undefined,
  isRecentlyGone: IsRecentlyGone = () => false,
): Steps<TenantSnapshot> {
  const workspace = caches.Workspace.store.get(name);
  // Don't apply objects in a foreign namespace, i.e. one without the label. If a namespace is being deleted, its
  // objects can be removed in any order, so we need to close it first. If it stayed open, a Block might disappear
  // before the blocked object.
  const home = caches.namespaces.store.get(name);
  const adopted = home?.workspace === name;
  const exists =
    workspace !== undefined && workspace.metadata.deletionTimestamp === undefined && isProtected(workspace);
  const open = exists && adopted && !home.deleting;
  const held = !open && home?.deleting !== true && (exists || isRecentlyGone(name));
  const account = workspace === undefined ? undefined : caches.Account.store.get(workspace.spec.account);
  const of = <P>(kind: { store: { byIndex: (index: string, entry: string) => readonly P[] } }, index = 'namespace') =>
    kind.store.byIndex(index, name);
  const tenant = {
    name,
    ...(open ? { workspace: { spec: workspace.spec } } : {}),
    ...(held ? { held } : {}),
    ...(workspace === undefined ? {} : { account: payer(account, isShort) }),
    secretKeys: of(caches.ingressKeys).flatMap(({ sha256 }) => (sha256 === undefined ? [] : [sha256])),
  };
  const streams = of(caches.CatalogStream).filter(object => isProtected(object) && !isRemoved(object.metadata.uid));
  const packages = of(caches.Package);
  const blocks = of(caches.Block);
  const integrations = of(caches.Integration);
  const subscriptions = of(caches.Subscription, 'producer').filter(isProtected);
  const fields = new Map(of(caches.Subscription, 'secretFor').map(object => [object.metadata.uid, fieldsOf(object)]));
  return (function* () {
    return {
      ...tenant,
      streams: yield* mapSteps(streams, snapshotOf),
      packages: yield* mapSteps(packages, snapshotOf),
      blocks: yield* mapSteps(blocks, snapshotOf),
      integrations: yield* mapSteps(integrations, snapshotOfIntegration),
      subscriptions: yield* mapSteps(subscriptions, object => {
        const headerFields = fields.get(object.metadata.uid);
        const snapshot = snapshotOfSubscription(object);
        return headerFields === undefined ? snapshot : { ...snapshot, headerFields };
      }),
    };
  })();
}

/** Returns a workspace's account. If it does not exist, no events are routed, as if it had no tokens. */
function payer(account: Cached<'Account'> | undefined, isShort: (account: string) => boolean) {
  if (account === undefined) return { plan: '', short: true } as const;
  return { plan: account.spec.plan, limits: account.spec.limits, short: isShort(account.metadata.name) };
}

/**
 * Returns all objects that may affect the routes of the workspace `name`. The returned objects do not change even if
 * the caches change later.
 */
export function objectsOfTenant(caches: Caches, name: string): readonly AnyObject[] {
  const workspace = caches.Workspace.store.get(name);
  const inNamespace = (['CatalogStream', 'Package', 'Integration', 'Block'] as const).map(
    kind => caches[kind].store.byIndex('namespace', name) as readonly AnyObject[],
  );
  const subscriptions = caches.Subscription.store.byIndex('producer', name);
  return [workspace === undefined ? [] : [workspace], ...inNamespace, subscriptions].flat();
}
