import { publicId } from '../../../core/ids/ids.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { cacheBehind } from '../../../kube/kube-error.ts';
import { type Cached, pairKey } from '../../caches/caches.ts';
import { type Context, hasAdopted } from '../../context/context.ts';
import { isPaused } from '../../context/paused.ts';
import type { Attempt } from '../../engine/keyed-controller.ts';
import { isOpen } from './open-gates.ts';
import { type Pair, parsePair } from './pair.ts';
import { type ActivationStatusWriter, createPairStatuses } from './pair-statuses.ts';

/**
 * Applies a single pair to Redis. Includes the stream parts and the record. Since clients will wait for the statuses,
 * we need to write them last.
 */
export function reconcilePair(context: Context, writer: ActivationStatusWriter) {
  const { caches } = context;
  const statuses = createPairStatuses(writer, context.wallMs);
  return async (key: string, attempt: Attempt): Promise<{ readonly requeueAfterMs: number } | undefined> => {
    const { signal } = attempt;
    const pair = parsePair(key);
    const { namespace } = pair;
    // Keep the objects used for this decision so that the statuses describe the same state. Once the cache contains a
    // status, the writer forgets it, so the objects must contain it from the start.
    const activations = caches.Activation.store
      .byIndex('pair', key)
      .map(each => writer.latest(each) as Cached<'Activation'>);
    const integration = caches.Integration.store.get(`${namespace}/${pair.integration}`);
    // A pair is closed even if the workspace is paused. This includes pairs without any objects.
    if (isPaused(caches, namespace) && isOpen(activations) && integration !== undefined) {
      await statuses.writePaused(activations, namespace, signal);
      return undefined;
    }
    const workspaceExists = caches.Workspace.store.get(namespace) !== undefined;
    // A revoked pair is also closed without a workspace. If it stayed open, it would also be open when the workspace is
    // created again.
    if (!workspaceExists && isOpen(activations)) {
      const facts = { open: false, workspaceExists, state: undefined };
      return statuses.writeApplied(pair, activations, facts, signal);
    }
    let open: boolean;
    try {
      const opens = isOpen(activations) && integration !== undefined;
      await prepareTenant(context, namespace, opens);
      open = await context.shared(namespace, () => commit(context, pair));
    } catch (error) {
      const explained = context.explain(error);
      await statuses.writeFailure(activations, explained, attempt);
      throw explained;
    }
    const state = integration && integrationStatus(integration, context.wallMs());
    const isRouted = workspaceExists && (!open || hasAdopted(caches, namespace));
    return statuses.writeApplied(pair, activations, { open, workspaceExists: isRouted, state }, signal);
  };
}

/**
 * Waits until the tenant routes are known. If the workspace is paused, or if its Secrets cannot be read and the pair is
 * closed, it waits until the closing changes have been applied.
 */
async function prepareTenant({ caches, tenants }: Context, namespace: string, opens: boolean): Promise<void> {
  const isClosed = () => !opens && tenants.isClosing(namespace);
  if (tenants.isSynced(namespace) || isClosed()) return;
  try {
    await tenants.sync(namespace);
  } catch (error) {
    if (!isClosed()) throw error;
  }
  if (isPaused(caches, namespace) && !tenants.isClosing(namespace)) throw cacheBehind(`what closes of ${namespace}`);
}

/** Writes the pair to Redis and returns whether it is open. */
async function commit(context: Context, { namespace, integration, groupKey }: Pair): Promise<boolean> {
  const { caches, control } = context;
  const activations = caches.Activation.store.byIndex('pair', pairKey(namespace, integration, groupKey));
  const open = isOpen(activations) && caches.Integration.store.get(`${namespace}/${integration}`) !== undefined;
  const routes = context.tenants.compiled(namespace)?.routes;
  // The workspace has been paused in the meantime. The pair is not changed, because it will be retried.
  if (open && isPaused(caches, namespace)) throw cacheBehind(`the pause of ${namespace}`);
  if (open && routes === undefined) throw cacheBehind(`routes of ${namespace}`);
  const id = publicId('Integration', namespace, integration);
  const fence = context.fence();
  const nowMs = context.nowMs();
  await control.setActivation(fence, id, groupKey, open ? nowMs : null);
  return open;
}
