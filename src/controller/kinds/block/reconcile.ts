import { FINALIZER } from '../../../api/well-known.ts';
import { cacheBehind } from '../../../kube/kube-error.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { settled } from '../../context/paused.ts';
import { planBlock } from './plan.ts';

/**
 * Reports a Block once the routes of its tenant include it. Its integration and target must be in the routes, too: a
 * new package may be missing from the routes that its Block was compiled into. A Block only closes, so it is applied in
 * a paused workspace as well.
 */
export function reconcileBlock(context: Pick<Context, 'caches' | 'tenants'>) {
  const { caches } = context;
  return async (block: Cached<'Block'>) => {
    const { metadata, spec } = block;
    const namespace = metadata.namespace as string;
    const integration = caches.Integration.store.get(`${namespace}/${spec.integration}`);
    const target = caches[spec.target.kind].store.get(`${namespace}/${spec.target.name}`);
    const workspaceExists = caches.Workspace.store.get(namespace) !== undefined;
    const facts = {
      namespace,
      integration: spec.integration,
      target: spec.target,
      workspaceExists,
      integrationExists: integration !== undefined,
      targetExists: target !== undefined,
    };
    if (!workspaceExists) return planBlock({ ...facts, pausedSubscriptions: 0 });
    // A package without its finalizer could be deleted while its Block is Enforced.
    if (spec.target.kind === 'Package' && target !== undefined && target.metadata.deletionTimestamp === undefined) {
      if (target.metadata.finalizers?.includes(FINALIZER) !== true)
        throw cacheBehind(`finalizer of ${target.metadata.name}`);
    }
    let compiled = await settled(context, namespace, block);
    for (const object of [integration, target]) {
      if (object !== undefined) compiled = await settled(context, namespace, object);
    }
    return planBlock({ ...facts, pausedSubscriptions: compiled.paused.get(metadata.uid) ?? 0 });
  };
}
