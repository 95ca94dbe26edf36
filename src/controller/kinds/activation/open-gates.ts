import { pairIsOpen } from '../../../core/routing/activation-state.ts';
import { finish, type Steps } from '../../../core/routing/steps.ts';
import type { OpenKey, OpenKeySource } from '../../../record/open-keys.ts';
import { type Cached, type Caches, pairKey } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { findCondition } from '../../engine/conditions.ts';

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
export function openGatesOf(
  { caches, nowMs }: Pick<Context, 'caches' | 'nowMs'>,
  namespace: string,
): Required<OpenKeySource> {
  /** The group keys of each integration that is being read, or has been read. */
  const reading = new Map<string, Steps<void>>();
  const read = new Map<string, readonly OpenKey[]>();

  function* readGates(integration: string): Steps<void> {
    const now = nowMs();
    const objects = caches.Integration.store.byIndex('publicId', integration);
    const name = objects.find(({ metadata }) => metadata.namespace === namespace)?.metadata.name;
    const open: OpenKey[] = [];
    for (const [groupKey, activations] of name === undefined ? [] : pairsOf(caches, namespace, name)) {
      if (isOpen(activations)) open.push({ groupKey, sinceMs: openSinceMs(activations, now) });
      yield;
    }
    read.set(integration, open);
  }

  /** Calls for the same integration share their steps. */
  function* load(integration: string): Steps<void> {
    const known = reading.get(integration);
    const steps = known ?? readGates(integration);
    if (known === undefined) reading.set(integration, steps);
    while (!steps.next().done) yield;
  }

  return {
    load,
    get(integration) {
      finish(load(integration));
      return read.get(integration);
    },
  };
}

/**
 * Yields the group keys of an integration with all of their Activations. The Activations of a group key are read at the
 * same time, because a state that combines an earlier and a later one could be open although none of them was.
 */
export function* pairsOf(
  { Activation: { store } }: Pick<Caches, 'Activation'>,
  namespace: string,
  integration: string,
): Generator<readonly [groupKey: string, activations: readonly Cached<'Activation'>[]], void, undefined> {
  const seen = new Set<string>();
  for (const { spec } of store.eachByIndex('integration', `${namespace}/${integration}`)) {
    const { groupKey } = spec;
    if (seen.has(groupKey)) continue;
    seen.add(groupKey);
    yield [groupKey, store.byIndex('pair', pairKey(namespace, integration, groupKey))];
  }
}
