import { FINALIZER } from '../../../api/well-known.ts';
import { cacheBehind } from '../../../kube/kube-error.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { settledClosing } from '../../context/paused.ts';
import { planBlock } from './plan.ts';

/**
 * Updates the status of a Block after the routes of its tenant include it. The routes must also include
 * its integration and its target because they may contain the Block without a new package. Neither paused
 * workspaces nor unreadable Secrets make a difference here: a Block can only close routes.
 */
export function reconcileBlock(context: Pick<Context, 'caches' | 'tenants' | 'secretAccess'>) {
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
    // Without this finalizer, the package could be deleted while its Block is Enforced.
    if (spec.target.kind === 'Package' && target !== undefined && target.metadata.deletionTimestamp === undefined) {
      if (target.metadata.finalizers?.includes(FINALIZER) !== true)
        throw cacheBehind(`finalizer of ${target.metadata.name}`);
    }
    let compiled = await settledClosing(context, namespace, block);
    for (const object of [integration, target]) {
      if (object !== undefined) compiled = await settledClosing(context, namespace, object);
    }
    return planBlock({ ...facts, pausedSubscriptions: compiled.paused.get(metadata.uid) ?? 0 });
  };
}
