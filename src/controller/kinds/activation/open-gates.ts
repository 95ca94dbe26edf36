import { publicId } from '../../../core/ids/ids.ts';
import { pairIsOpen } from '../../../core/routing/activation-state.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { OpenGate } from '../../routes/apply.ts';

/** Returns true if the objects open the pair. */
export function isOpen(activations: readonly Cached<'Activation'>[]): boolean {
  return pairIsOpen(
    activations.map(({ metadata, spec }) => ({
      revoked: spec.revoked === true,
      deleting: metadata.deletionTimestamp !== undefined,
    })),
  );
}

/** Returns the time at which the pair was opened, according to the statuses. Used when rebuilding the data in Redis. */
function openSinceMs(activations: readonly Cached<'Activation'>[], nowMs: number): number {
  const times = activations.flatMap(({ status }) => {
    const effective = findCondition(status?.conditions, 'Effective');
    return effective?.status === 'True' ? [Date.parse(effective.lastTransitionTime)] : [];
  });
  return times.length === 0 ? nowMs : Math.min(...times);
}

/** Uses the caches to get all open group keys of a workspace, by integration id (`int_…`). */
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
