import { publicId, tenantId } from '../../../core/ids/ids.ts';
import { pairIsOpen } from '../../../core/routing/activation-state.ts';
import { integrationState } from '../../../core/routing/integration-state.ts';
import { cacheBehind, isKubeError, isStale } from '../../../kube/kube-error.ts';
import { keyOf } from '../../../kube/object.ts';
import { inboxMember } from '../../../redis/inbox-store.ts';
import { type Cached, pairKey } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { isPaused, planPaused } from '../../context/paused.ts';
import { reportFailure } from '../../engine/failure.ts';
import type { Attempt } from '../../engine/keyed-controller.ts';
import { createMissingReferences } from '../../engine/missing-references.ts';
import type { CommonStatus, StatusWriter } from '../../engine/status-writer.ts';
import { inboxesOf, type OpenGate } from '../../routes/apply.ts';
import { type ActivationFacts, planActivation } from './plan.ts';

export interface Pair {
  readonly namespace: string;
  readonly integration: string;
  readonly groupKey: string;
}

/** Parses a key of `pairKey`. Names have no slash, but a group key may. */
export function parsePair(key: string): Pair {
  const first = key.indexOf('/');
  const second = key.indexOf('/', first + 1);
  return { namespace: key.slice(0, first), integration: key.slice(first + 1, second), groupKey: key.slice(second + 1) };
}

/** Returns whether the objects of a pair open it. */
export function isOpen(activations: readonly Cached<'Activation'>[]): boolean {
  return pairIsOpen(
    activations.map(({ metadata, spec }) => ({
      revoked: spec.revoked === true,
      deleting: metadata.deletionTimestamp !== undefined,
    })),
  );
}

/** Returns when the pair was opened, from the statuses. A rebuilt Redis starts from this time. */
function openSinceMs(activations: readonly Cached<'Activation'>[], nowMs: number): number {
  const times = activations.flatMap(({ status }) => {
    const effective = status?.conditions?.find(({ type }) => type === 'Effective');
    return effective?.status === 'True' ? [Date.parse(effective.lastTransitionTime)] : [];
  });
  return times.length === 0 ? nowMs : Math.min(...times);
}

/** Returns the open group keys of a workspace from the caches, by `int_…`. */
export function openGatesOf(
  { caches, nowMs }: Pick<Context, 'caches' | 'nowMs'>,
  namespace: string,
): Map<string, OpenGate[]> {
  const gates = new Map<string, OpenGate[]>();
  const now = nowMs();
  for (const integration of caches.Integration.store.byIndex('namespace', namespace)) {
    const { name } = integration.metadata;
    const ofIntegration = caches.Activation.store.byIndex('integration', `${namespace}/${name}`);
    const open: OpenGate[] = [];
    for (const [groupKey, activations] of Map.groupBy(ofIntegration, ({ spec }) => spec.groupKey)) {
      if (isOpen(activations)) open.push({ groupKey, sinceMs: openSinceMs(activations, now) });
    }
    if (open.length > 0) gates.set(publicId('Integration', namespace, name), open);
  }
  return gates;
}

/**
 * Applies one pair: the inbox side first, then the tenant's index, both for opening and for closing. The inbox side is
 * the authority and must never be behind. Statuses are written after the commit, because callers wait for them.
 */
export function reconcilePair(context: Context, status: StatusWriter<Cached<'Activation'>['spec'], CommonStatus>) {
  const { caches, control, tenants } = context;
  const references = createMissingReferences(context.wallMs);

  /** `again`: the last try failed, perhaps after the gate opened and before the hints were lowered. */
  async function commit({ namespace, integration, groupKey }: Pair, again: boolean): Promise<boolean> {
    const activations = caches.Activation.store.byIndex('pair', pairKey(namespace, integration, groupKey));
    const open = isOpen(activations) && caches.Integration.store.get(`${namespace}/${integration}`) !== undefined;
    const routes = tenants.compiled(namespace)?.routes;
    // Paused meanwhile: leave it as it is and retry.
    if (open && isPaused(caches, namespace)) throw cacheBehind(`the pause of ${namespace}`);
    if (open && routes === undefined) throw cacheBehind(`routes of ${namespace}`);
    const id = publicId('Integration', namespace, integration);
    const fence = context.fence();
    const nowMs = context.nowMs();
    const inboxes = open && routes !== undefined ? inboxesOf(routes, id) : [];
    const changed = await control.setActivation(fence, nowMs, id, groupKey, open ? nowMs : null, inboxes);
    if (open && inboxes.length > 0 && (changed || again)) {
      const tenant = tenantId(namespace);
      await context.inboxHints.lower(
        inboxes.map(inbox => ({ member: inboxMember(inbox), dueMs: nowMs, home: `${tenant}:${inbox.queue}` })),
      );
    }
    await control.setGate(fence, tenantId(namespace), id, groupKey, open);
    return open;
  }

  /** Writes a failure as the engine does for other kinds, but without Events: there may be 100,000 activations. */
  async function writeFailure(
    activations: readonly Cached<'Activation'>[],
    error: unknown,
    { failures, signal, log }: Attempt,
  ): Promise<void> {
    if (signal.aborted || isStale(error)) return;
    for (const activation of activations) {
      const { conditions, observedGeneration: _, ...fields } = status.latest(activation).status ?? {};
      const generation = activation.metadata.generation ?? 0;
      const report = reportFailure(error, { generation, conditions }, failures);
      if (report === undefined) continue;
      await status
        .write(activation, fields, report.conditions, signal)
        .catch((err: unknown) => log.debug({ err }, 'a failure could not be written'));
    }
  }

  /** Writes the status of each object of the pair and returns when to requeue. Skips objects that are gone. */
  async function say(
    pair: Pair,
    activations: readonly Cached<'Activation'>[],
    facts: Pick<ActivationFacts, 'open' | 'workspaceExists' | 'state'>,
    signal: AbortSignal,
  ): Promise<{ readonly requeueAfterMs: number } | undefined> {
    const pausesMs: number[] = [];
    for (const activation of activations) {
      const { metadata, status: said } = status.latest(activation);
      const waiting = {
        key: keyOf(metadata),
        generation: metadata.generation ?? 0,
        conditions: said?.conditions,
      };
      const planned = planActivation({ ...pair, ...facts, revoked: activation.spec.revoked === true });
      const outcome = references.judge(waiting, planned);
      if (outcome.requeueAfterMs !== undefined) pausesMs.push(outcome.requeueAfterMs);
      try {
        await status.write(activation, outcome.status ?? {}, outcome.conditions, signal);
      } catch (error) {
        if (!isKubeError(error, 404)) throw error;
      }
    }
    return pausesMs.length === 0 ? undefined : { requeueAfterMs: Math.min(...pausesMs) };
  }

  return async (key: string, attempt: Attempt): Promise<{ readonly requeueAfterMs: number } | undefined> => {
    const pair = parsePair(key);
    const { namespace } = pair;
    // Keep the objects of the decision: the statuses describe this state.
    const activations = caches.Activation.store.byIndex('pair', key);
    const integration = caches.Integration.store.get(`${namespace}/${pair.integration}`);
    // Closing does not wait for the end of a pause. A pair without objects closes, too.
    if (isPaused(caches, namespace) && isOpen(activations) && integration !== undefined) {
      for (const activation of activations) {
        const said = planPaused(status.latest(activation), namespace);
        await status.write(activation, said.status ?? {}, said.conditions, attempt.signal);
      }
      return undefined;
    }
    if (caches.Workspace.store.get(namespace) === undefined && activations.length > 0) {
      return say(pair, activations, { open: false, workspaceExists: false, state: undefined }, attempt.signal);
    }
    let open: boolean;
    try {
      if (!tenants.isSynced(namespace) && !tenants.isClosing(namespace)) {
        await tenants.sync(namespace);
        if (isPaused(caches, namespace) && !tenants.isClosing(namespace))
          throw cacheBehind(`what closes of ${namespace}`);
      }
      open = await context.shared(namespace, () => commit(pair, attempt.failures > 0));
    } catch (error) {
      const explained = context.explain(error);
      await writeFailure(activations, explained, attempt);
      throw explained;
    }
    const expiresAt = integration?.status?.invitation?.expiresAt;
    const state =
      integration &&
      integrationState(
        { spec: integration.spec, ...(expiresAt === undefined ? {} : { expiresMs: Date.parse(expiresAt) }) },
        context.wallMs(),
      );
    return say(pair, activations, { open, workspaceExists: true, state }, attempt.signal);
  };
}
