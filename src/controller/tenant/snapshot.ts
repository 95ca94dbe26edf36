import { FINALIZER } from '../../api/well-known.ts';
import type { SnapshotMeta, TenantSnapshot } from '../../core/snapshot.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { World } from '../world.ts';

function metaOf({ metadata }: AnyObject): SnapshotMeta {
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    uid: metadata.uid,
    createdMs: Date.parse(metadata.creationTimestamp ?? '') || 0,
    deleting: metadata.deletionTimestamp !== undefined,
  };
}

/** No effect before the finalizer is there: what is not protected yet does not exist for the routes. */
function isProtected({ metadata }: AnyObject): boolean {
  return metadata.finalizers?.includes(FINALIZER) === true;
}

function msOf(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time);
}

/** Everything that decides the routes of the workspace `name`, out of the caches. */
export function gatherTenant(
  world: World,
  isRemoved: (uid: string) => boolean,
  name: string,
  isShort: (account: string) => boolean = () => false,
): TenantSnapshot {
  const workspace = world.Workspace.store.get(name);
  // A namespace that somebody else made, without the label, is not the workspace's: nothing in it comes into force. One
  // that is being deleted loses its objects in any order: closed first, or a Block could go before what it keeps back.
  const home = world.namespaces.store.get(name);
  const adopted = home?.workspace === name && !home.deleting;
  const deleting = workspace?.metadata.deletionTimestamp !== undefined;
  const open = workspace !== undefined && adopted && !deleting && isProtected(workspace);
  const account = workspace === undefined ? undefined : world.Account.store.get(workspace.spec.account);
  const of = <P>(kind: { store: { byIndex: (index: string, entry: string) => readonly P[] } }, index = 'namespace') =>
    kind.store.byIndex(index, name);
  return {
    name,
    ...(open ? { workspace: { spec: workspace.spec } } : {}),
    ...(account === undefined ? {} : { account: { plan: account.spec.plan, short: isShort(account.metadata.name) } }),
    secretKeys: of(world.ingressKeys).map(({ sha256 }) => sha256),
    streams: of(world.CatalogStream)
      .filter(object => isProtected(object) && !isRemoved(object.metadata.uid))
      .map(object => ({ ...metaOf(object), spec: object.spec })),
    packages: of(world.Package).map(object => ({ ...metaOf(object), spec: object.spec })),
    blocks: of(world.Block).map(object => ({ ...metaOf(object), spec: object.spec })),
    integrations: of(world.Integration).map(object => {
      const expiresMs = msOf(object.status?.invitation?.expiresAt);
      const accepted = object.status?.conditions?.find(({ type }) => type === 'Accepted');
      const acceptedMs = accepted?.status === 'True' ? msOf(accepted.lastTransitionTime) : undefined;
      return {
        ...metaOf(object),
        spec: object.spec,
        ...(expiresMs === undefined ? {} : { expiresMs }),
        ...(acceptedMs === undefined ? {} : { acceptedMs }),
      };
    }),
    subscriptions: of(world.Subscription, 'producer')
      .filter(isProtected)
      .map(object => {
        const admittedMs = msOf(object.status?.admittedAt);
        const rotatedMs = msOf(object.status?.signing?.rotatedAt);
        const signedVersion = object.status?.signing?.version;
        return {
          ...metaOf(object),
          spec: object.spec,
          ...(admittedMs === undefined ? {} : { admittedMs }),
          ...(signedVersion === undefined ? {} : { signedVersion }),
          ...(rotatedMs === undefined ? {} : { rotatedMs }),
        };
      }),
  };
}

/** Every object whose change may change the routes of the workspace `name`. */
export function* objectsOfTenant(world: World, name: string): Generator<AnyObject> {
  const workspace = world.Workspace.store.get(name);
  if (workspace !== undefined) yield workspace;
  for (const kind of ['CatalogStream', 'Package', 'Integration', 'Block'] as const) {
    yield* world[kind].store.byIndex('namespace', name);
  }
  yield* world.Subscription.store.byIndex('producer', name);
}
