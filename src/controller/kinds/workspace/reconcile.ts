import { CONDITION } from '../../../api/condition-reasons.ts';
import type { WorkspaceStatus } from '../../../api/kinds/workspace.ts';
import { PAUSED_ANNOTATION, WORKSPACE_LABEL } from '../../../api/well-known.ts';
import { cacheBehind, isKubeError } from '../../../kube/kube-error.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { NAMESPACES } from '../../../kube/resource.ts';
import type { Cached } from '../../caches/caches.ts';
import { type Context, FINALIZER_TIMEOUT_MS } from '../../context/context.ts';
import { OUTAGE_REPORTED_AFTER_MS } from '../../context/data-plane.ts';
import { findCondition } from '../../engine/conditions.ts';
import { reportFailure } from '../../engine/failure.ts';
import { OutageError, type Outcome } from '../../engine/outcome.ts';
import { planWorkspace, reachability, type WorkspaceFacts } from './plan.ts';

/** Creates the namespace unless it exists, and returns its state. Foreign namespaces are left alone. */
async function claimNamespace({ client, caches }: Context, name: string): Promise<WorkspaceFacts['namespace']> {
  const known = caches.namespaces.store.get(name);
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

/** Requeue interval in milliseconds for a workspace whose part of Redis doesn't respond. */
const AWAY_CHECK_MS = 5_000;

/**
 * Returns a workspace's status during an outage. If the current generation has been applied, the outage is added to the
 * existing conditions.
 */
function planAway(
  { metadata, status }: Cached<'Workspace'>,
  error: OutageError,
  facts: Parameters<typeof reachability>[0],
): Outcome<WorkspaceStatus> {
  const { conditions = [], observedGeneration: _, ...fields } = status ?? {};
  const report = reportFailure(error, { generation: metadata.generation ?? 0, conditions }, 0);
  const kept = (report?.conditions ?? conditions).filter(({ type }) => type !== CONDITION.Workspace.DataPlaneReachable);
  return { status: fields, conditions: [...kept, ...reachability(facts)], requeueAfterMs: AWAY_CHECK_MS };
}

export function reconcileWorkspace(context: Context) {
  return async (workspace: Cached<'Workspace'>): Promise<Outcome<WorkspaceStatus>> => {
    const { name } = workspace.metadata;
    const namespace = await claimNamespace(context, name);
    const { conditions, producer } = workspace.status ?? {};
    const facts = {
      name,
      namespace,
      account: workspace.spec.account,
      pauseValue: workspace.metadata.annotations?.[PAUSED_ANNOTATION],
      accountExists: context.caches.Account.store.get(workspace.spec.account) !== undefined,
      // Once a producer, a workspace remains one even after its last stream is deleted.
      producer:
        workspace.spec.producer === true ||
        producer === true ||
        context.caches.CatalogStream.store.byIndex('namespace', name).length > 0,
      wasReady: findCondition(conditions, CONDITION.Workspace.Ready)?.status === 'True',
      short: context.shortages.isShort(workspace.spec.account),
      insufficientTokens: findCondition(conditions, CONDITION.Workspace.InsufficientTokens),
      dataPlaneReachable: findCondition(conditions, CONDITION.Workspace.DataPlaneReachable),
    };
    const isAway = () => context.dataPlane.awayForMs(name) >= OUTAGE_REPORTED_AFTER_MS;
    try {
      if (namespace === 'adopted') await context.tenants.inForce(name, workspace);
      context.dataPlane.note(name, true);
    } catch (error) {
      if (!(error instanceof OutageError)) throw error;
      context.dataPlane.note(name, false);
      if (!isAway()) throw error;
      return planAway(workspace, error, { ...facts, dataPlaneAway: true });
    }
    return planWorkspace({ ...facts, dataPlaneAway: isAway() });
  };
}

/** Closes the workspace's routes, keeping both the namespace and the data in Redis. */
export function finalizeWorkspace(context: Context) {
  return async (workspace: Cached<'Workspace'>): Promise<'done'> => {
    try {
      await context.tenants.inForce(workspace.metadata.name, workspace);
    } catch (error) {
      if (context.deletingForMs(workspace) < FINALIZER_TIMEOUT_MS) throw error;
      context.recordForcedRemoval('Workspace', workspace);
    }
    return 'done';
  };
}
