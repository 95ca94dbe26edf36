import type { PackageStatus } from '../../../api/kinds/package.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { NAMESPACES } from '../../../kube/resource.ts';
import { type Cached, targetKey } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import type { Finalization } from '../../engine/outcome.ts';
import { type PackageFacts, planPackage, planStillBlocking } from './plan.ts';

function factsOf({ caches }: Pick<Context, 'caches'>, { metadata, spec }: Cached<'Package'>): PackageFacts {
  const namespace = metadata.namespace as string;
  return {
    namespace,
    name: metadata.name,
    streams: spec.streams ?? [],
    streamExists: stream => caches.CatalogStream.store.get(`${namespace}/${stream}`) !== undefined,
    workspaceExists: caches.Workspace.store.get(namespace) !== undefined,
  };
}

export function reconcilePackage(context: Pick<Context, 'caches' | 'tenants'>) {
  return async (pkg: Cached<'Package'>) => {
    const facts = factsOf(context, pkg);
    if (facts.workspaceExists) await context.tenants.inForce(facts.namespace, pkg);
    return planPackage(facts);
  };
}

/**
 * Waits until no Block refers to the package. Without this wait, deleting the package could lift a block by accident.
 * Does not wait if the namespace is being deleted. Packages do not have any data in Redis.
 */
export function finalizePackage(context: Pick<Context, 'caches' | 'client'>) {
  return async (pkg: Cached<'Package'>): Promise<Finalization<PackageStatus>> => {
    const facts = factsOf(context, pkg);
    const { namespace, name } = facts;
    const blocks = context.caches.Block.store
      .byIndex('target', targetKey(namespace, 'Package', name))
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name);
    if (blocks.length === 0) return 'done';
    const home = await context.client.get<AnyObject>(NAMESPACES, { name: namespace });
    if (home === undefined || home.metadata.deletionTimestamp !== undefined) return 'done';
    return planStillBlocking(facts, blocks);
  };
}
