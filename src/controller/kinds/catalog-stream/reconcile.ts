import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import { parseDurationMs } from '../../../api/durations.ts';
import type { CatalogStreamStatus } from '../../../api/kinds/catalog-stream.ts';
import { generationOf, tenantId } from '../../../core/ids/ids.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { NAMESPACES } from '../../../kube/resource.ts';
import type { Cached } from '../../caches/caches.ts';
import { type Context, FINALIZER_TIMEOUT_MS, hasAdopted } from '../../context/context.ts';
import { isRemovedDespite } from '../../context/forced-removal.ts';
import { findCondition } from '../../engine/conditions.ts';
import { type Finalization, ReconcileError } from '../../engine/outcome.ts';
import { planDraining, planStream, type StreamFacts } from './plan.ts';

function factsOf(
  { caches }: Context,
  { metadata, spec }: Cached<'CatalogStream'>,
): StreamFacts & { workspaceExists: boolean } {
  const namespace = metadata.namespace as string;
  return {
    namespace,
    name: metadata.name,
    published: spec.public === true,
    workspaceExists: hasAdopted(caches, namespace),
  };
}

/**
 * Waits until the routes include the stream. If it was waiting for its workspace, the routes may have been compiled
 * without the workspace. In this case, they are compiled again. Thousands of streams may wait for the same workspace,
 * so this must only be done for the first ones.
 */
async function applied({ tenants }: Context, namespace: string, stream: Cached<'CatalogStream'>): Promise<void> {
  const { routes } = await tenants.inForce(namespace, stream);
  const ready = findCondition(stream.status?.conditions, CONDITION.CatalogStream.Ready);
  const waited = ready?.reason === REASON.CatalogStream.Ready.WaitingForWorkspace;
  if (!waited || routes.queues[stream.metadata.name]?.state === 'open') return;
  await tenants.sync(namespace);
  await tenants.inForce(namespace, stream);
}

/** The CRDs do not permit any other retention, but they may belong to another version. */
function assertRetention({ spec }: Cached<'CatalogStream'>): void {
  try {
    parseDurationMs(spec.retention);
  } catch (error) {
    const message = `spec.retention is ${(error as Error).message}. Until then, events are kept for 720h`;
    throw new ReconcileError(REASON.CatalogStream.Ready.ReconcileFailed, message);
  }
}

export function reconcileStream(context: Context) {
  return async (stream: Cached<'CatalogStream'>) => {
    const facts = factsOf(context, stream);
    if (facts.workspaceExists) await applied(context, facts.namespace, stream);
    assertRetention(stream);
    return planStream(facts);
  };
}

/** The API server is only queried for namespaces without the workspace label. All other namespaces are in the cache. */
async function isNamespaceGoing({ caches, client }: Context, name: string): Promise<boolean> {
  const cached = caches.namespaces.store.get(name);
  if (cached !== undefined) return cached.deleting;
  const namespace = await client.get<AnyObject>(NAMESPACES, { name });
  return namespace === undefined || namespace.metadata.deletionTimestamp !== undefined;
}

/**
 * Returns true if a stream which is being deleted must be kept during a pause because it has undelivered events. These
 * events are delivered during the pause. After it, they would be lost.
 */
export function holdsEvents(context: Context) {
  return async ({ metadata, spec }: Cached<'CatalogStream'>): Promise<boolean> => {
    const { namespace = '', name } = metadata;
    if (spec.deletionPolicy !== 'Retain' || (await isNamespaceGoing(context, namespace))) return false;
    try {
      const { unrouted, open } = await context.control.readDrain(tenantId(namespace), name);
      return unrouted + open > 0;
    } catch {
      return context.dataPlane.awayForMs(namespace) < FINALIZER_TIMEOUT_MS;
    }
  };
}

/**
 * Finalizes a stream which is being deleted. With the Retain policy, the stream is removed once all events have been
 * delivered, whereas Delete removes it immediately. The finalizer is also removed if the namespace is being deleted, or
 * if Redis has not responded for one minute.
 */
export function finalizeStream(context: Context) {
  return async (stream: Cached<'CatalogStream'>): Promise<Finalization<CatalogStreamStatus>> => {
    const facts = factsOf(context, stream);
    const { namespace, name } = facts;
    const tenant = tenantId(namespace);
    try {
      await context.tenants.inForce(namespace, stream);
      if (stream.spec.deletionPolicy === 'Retain') {
        const drain = await context.control.readDrain(tenant, name);
        if (drain.unrouted + drain.open > 0) {
          if (!(await isNamespaceGoing(context, namespace)))
            return planDraining(facts, drain, context.deletingForMs(stream));
          return 'done';
        }
      }
      const { uid } = stream.metadata;
      await context.tenants.remove(namespace, uid, fence =>
        context.control.dropQueue(fence, tenant, name, generationOf(uid)),
      );
    } catch (error) {
      if (!isRemovedDespite(error) || context.stuckForMs(stream) < FINALIZER_TIMEOUT_MS) throw context.explain(error);
      context.recordForcedRemoval('CatalogStream', stream);
    }
    return 'done';
  };
}
