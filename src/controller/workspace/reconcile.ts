import { CONDITION } from '../../api/condition-reasons.ts';
import { WORKSPACE_LABEL } from '../../api/well-known.ts';
import { cacheBehind, isKubeError } from '../../kube/kube-error.ts';
import type { AnyObject } from '../../kube/object.ts';
import { NAMESPACES } from '../../kube/resource.ts';
import { LET_GO_AFTER_MS, type Room } from '../room.ts';
import { findCondition } from '../runtime/conditions.ts';
import type { Cached } from '../world.ts';
import { planWorkspace, type WorkspaceFacts } from './plan.ts';

/** Creates the namespace, or finds it adopted; a namespace of somebody else is left alone. */
async function claimNamespace({ client, world }: Room, name: string): Promise<WorkspaceFacts['namespace']> {
  const known = world.namespaces.store.get(name);
  if (known !== undefined) return known.deleting ? 'terminating' : known.workspace === name ? 'adopted' : 'foreign';
  const found = await client.get<AnyObject>(NAMESPACES, { name });
  if (found === undefined) {
    try {
      await client.create(NAMESPACES, { name }, { metadata: { labels: { [WORKSPACE_LABEL]: name } } });
    } catch (error) {
      if (!isKubeError(error, 409)) throw error;
    }
    throw cacheBehind(`namespace ${name}`);
  }
  if (found.metadata.deletionTimestamp !== undefined) return 'terminating';
  return found.metadata.labels?.[WORKSPACE_LABEL] === name ? 'adopted' : 'foreign';
}

export function reconcileWorkspace(room: Room) {
  return async (workspace: Cached<'Workspace'>) => {
    const { name } = workspace.metadata;
    const namespace = await claimNamespace(room, name);
    const outcome = planWorkspace({
      name,
      namespace,
      account: workspace.spec.account,
      accountExists: room.world.Account.store.get(workspace.spec.account) !== undefined,
      // A producer stays one after its last stream was deleted.
      producer:
        workspace.spec.producer === true ||
        workspace.status?.producer === true ||
        room.world.CatalogStream.store.byIndex('namespace', name).length > 0,
      short: room.shortages.isShort(workspace.spec.account),
      insufficientTokens: findCondition(workspace.status?.conditions, CONDITION.Workspace.InsufficientTokens),
    });
    if (namespace === 'adopted') await room.tenants.inForce(name, workspace);
    return outcome;
  };
}

/** Closes the workspace's routing; its namespace and what lies in Redis stay. */
export function finalizeWorkspace(room: Room) {
  return async (workspace: Cached<'Workspace'>): Promise<'done'> => {
    try {
      await room.tenants.inForce(workspace.metadata.name, workspace);
    } catch (error) {
      if (room.deletingForMs(workspace) < LET_GO_AFTER_MS) throw error;
      room.tellLetGo('Workspace', workspace);
    }
    return 'done';
  };
}
