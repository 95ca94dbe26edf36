import { CONDITION } from '../../../api/condition-reasons.ts';
import { DEFAULT_INSTANCE } from '../../../api/instance.ts';
import type { WorkspaceStatus } from '../../../api/kinds/workspace.ts';
import { INSTANCE_LABEL, PAUSED_ANNOTATION, WORKSPACE_LABEL } from '../../../api/well-known.ts';
import { cacheBehind, isKubeError } from '../../../kube/kube-error.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { NAMESPACES } from '../../../kube/resource.ts';
import { type Cached, projectNamespace } from '../../caches/caches.ts';
import { type Context, FINALIZER_TIMEOUT_MS } from '../../context/context.ts';
import { OUTAGE_REPORTED_AFTER_MS } from '../../context/data-plane.ts';
import { isRemovedDespite } from '../../context/forced-removal.ts';
import { findCondition } from '../../engine/conditions.ts';
import { FAILURES_BEFORE_REPORT, reportFailure } from '../../engine/failure.ts';
import { OutageError, type Outcome } from '../../engine/outcome.ts';
import { quotaOfLimits } from './limit-quota.ts';
import { planWorkspace, reachability, type WorkspaceFacts } from './plan.ts';
import type { WorkspaceQuotas } from './quota.ts';

/** Creates the namespace if it does not exist and returns its state. Foreign namespaces are left alone. */
async function claimNamespace(
  { client, caches, instance }: Context,
  name: string,
): Promise<Pick<WorkspaceFacts, 'namespace' | 'namespaceInstance'>> {
  const cached = caches.namespaces.store.get(name);
  const found = cached === undefined ? await client.get<AnyObject>(NAMESPACES, { name }) : undefined;
  if (cached === undefined && found === undefined) {
    const labels = {
      [WORKSPACE_LABEL]: name,
      ...(instance === DEFAULT_INSTANCE ? {} : { [INSTANCE_LABEL]: instance }),
    };
    try {
      await client.create(NAMESPACES, { name }, { metadata: { labels } });
    } catch (error) {
      if (!isKubeError(error, 409)) throw error;
    }
    throw cacheBehind(`namespace ${name}`);
  }
  const { workspace, deleting, instance: namespaceInstance } = cached ?? projectNamespace(found as AnyObject, instance);
  if (deleting) return { namespace: 'terminating' };
  return workspace === name ? { namespace: 'adopted' } : { namespace: 'foreign', namespaceInstance };
}

/** The delay before requeuing a workspace if its part of Redis is not responding, in milliseconds. */
const AWAY_CHECK_MS = 5_000;

/**
 * Returns the status of a workspace during an outage. If the current generation has been applied, the outage is added
 * to the existing conditions.
 */
function planAway(
  { metadata, status }: Cached<'Workspace'>,
  error: OutageError,
  facts: Parameters<typeof reachability>[0],
): Outcome<WorkspaceStatus> {
  const { conditions = [], observedGeneration: _, ...fields } = status ?? {};
  const report = reportFailure(error, { generation: metadata.generation ?? 0, conditions }, FAILURES_BEFORE_REPORT);
  const kept = (report?.conditions ?? conditions).filter(({ type }) => type !== CONDITION.Workspace.DataPlaneReachable);
  return { status: fields, conditions: [...kept, ...reachability(facts)], requeueAfterMs: AWAY_CHECK_MS };
}

type WorkspaceContext = Context & { readonly quotas: Pick<WorkspaceQuotas, 'ensure' | 'forget'> };

export function reconcileWorkspace(context: WorkspaceContext) {
  return async (workspace: Cached<'Workspace'>): Promise<Outcome<WorkspaceStatus>> => {
    const { name } = workspace.metadata;
    const claimed = await claimNamespace(context, name);
    if (claimed.namespace !== 'adopted') context.quotas.forget(name);
    const account = context.caches.Account.store.get(workspace.spec.account);
    const { conditions, producer } = workspace.status ?? {};
    const facts = {
      name,
      instance: context.instance,
      ...claimed,
      account: workspace.spec.account,
      pauseValue: workspace.metadata.annotations?.[PAUSED_ANNOTATION],
      accountExists: account !== undefined,
      // A producer remains a producer even after its last stream has been deleted.
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
      if (claimed.namespace === 'adopted') {
        await context.quotas.ensure(name, quotaOfLimits(account?.spec.limits, context.limits.ceilings));
        await context.secretAccess.ensure(name);
        await context.tenants.inForce(name, workspace);
      }
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

/**
 * Waits until the ingress keys that were removed from a paused workspace are closed. Requires the keys in Secrets to be
 * known.
 */
export function closeWorkspace({ secretAccess, tenants }: Pick<Context, 'secretAccess' | 'tenants'>) {
  return async (workspace: Cached<'Workspace'>): Promise<void> => {
    const { name } = workspace.metadata;
    secretAccess.assertRead(name);
    await tenants.closedBy(name, workspace);
  };
}

/** Closes the workspace routes and removes access to its Secrets. The namespace and the data in Redis are kept. */
export function finalizeWorkspace(context: WorkspaceContext) {
  return async (workspace: Cached<'Workspace'>): Promise<'done'> => {
    try {
      await context.tenants.inForce(workspace.metadata.name, workspace);
    } catch (error) {
      if (!isRemovedDespite(error) || context.deletingForMs(workspace) < FINALIZER_TIMEOUT_MS) throw error;
      context.recordForcedRemoval('Workspace', workspace);
    }
    context.quotas.forget(workspace.metadata.name);
    await context.secretAccess.revoke(workspace.metadata.name);
    return 'done';
  };
}
