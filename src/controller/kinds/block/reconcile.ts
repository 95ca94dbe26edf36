import { FINALIZER } from '../../../api/well-known.ts';
import { cacheBehind } from '../../../kube/kube-error.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Room } from '../../context/context.ts';
import { settled } from '../../context/paused.ts';
import { planBlock } from './plan.ts';

/**
 * Reports a Block once the routes of its tenant include it. Its integration and target must be in the routes, too: a
 * new package may be missing from the routes that its Block was compiled into. A Block only closes, so it is applied in
 * a paused workspace as well.
 */
export function reconcileBlock(room: Pick<Room, 'world' | 'tenants'>) {
  const { world } = room;
  return async (block: Cached<'Block'>) => {
    const { metadata, spec } = block;
    const namespace = metadata.namespace as string;
    const integration = world.Integration.store.get(`${namespace}/${spec.integration}`);
    const target = world[spec.target.kind].store.get(`${namespace}/${spec.target.name}`);
    const workspaceExists = world.Workspace.store.get(namespace) !== undefined;
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
    let compiled = await settled(room, namespace, block);
    for (const object of [integration, target]) {
      if (object !== undefined) compiled = await settled(room, namespace, object);
    }
    return planBlock({ ...facts, pausedSubscriptions: compiled.paused.get(metadata.uid) ?? 0 });
  };
}
