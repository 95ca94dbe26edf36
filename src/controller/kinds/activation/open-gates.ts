import { pairIsOpen } from '../../../core/routing/activation-state.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { OpenGate, OpenGates } from '../../routes/apply.ts';

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

/**
 * Returns the open group keys of a workspace, by integration (`int_…`), according to the caches. Each integration is
 * read when it is needed for the first time so that a new subscription doesn't cost a look at all Activations of its
 * tenant. The result is kept because the parts and the record must be given the same group keys.
 */
export function openGatesOf({ caches, nowMs }: Pick<Context, 'caches' | 'nowMs'>, namespace: string): OpenGates {
  const read = new Map<string, readonly OpenGate[]>();

  function readGates(integration: string): readonly OpenGate[] {
    const now = nowMs();
    const objects = caches.Integration.store.byIndex('publicId', integration);
    const name = objects.find(({ metadata }) => metadata.namespace === namespace)?.metadata.name;
    if (name === undefined) return [];
    const open: OpenGate[] = [];
    const ofIntegration = caches.Activation.store.byIndex('integration', `${namespace}/${name}`);
    for (const [groupKey, activations] of Map.groupBy(ofIntegration, ({ spec }) => spec.groupKey)) {
      if (isOpen(activations)) open.push({ groupKey, sinceMs: openSinceMs(activations, now) });
    }
    return open;
  }

  return {
    get(integration) {
      const known = read.get(integration);
      if (known !== undefined) return known;
      const gates = readGates(integration);
      read.set(integration, gates);
      return gates;
    },
  };
}
