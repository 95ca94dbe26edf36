import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { activationObjectName } from '../../../core/ids/object-names.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { type ManagedFields, managedFieldsOf } from '../../../kube/managed-fields.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { resourceOf } from '../../../kube/resource.ts';
import { inSlices, type Steps } from '../../../time/slices.ts';
import { type Cached, type Caches, pairKeyOf } from '../../caches/caches.ts';
import { isPaused } from '../../context/paused.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { Attempt } from '../../engine/keyed-controller.ts';
import type { Pair } from './pair.ts';

/**
 * The time for which a revoked Activation that was created through the REST API is kept, so that clients can see when
 * it was revoked.
 */
export const KEEP_REVOKED_MS = 30 * 24 * 60 * 60 * 1_000;

/** The interval between two searches for Activations to remove. */
const SEARCH_EVERY_MS = 60 * 60 * 1_000;

/** An Activation, including its managed fields. */
export type OwnedActivation = Pick<Cached<'Activation'>, 'spec'> & {
  readonly metadata: AnyObject['metadata'] & { readonly managedFields?: readonly ManagedFields[] };
};

/** Returns the name given to a pair's Activation by the REST API. */
export function restName({ namespace, integration, groupKey }: Pair): string {
  return activationObjectName(namespace, integration, groupKey);
}

type Removal = 'never' | 'now' | { readonly notBeforeMs: number };

/**
 * Determines whether an Activation should be removed. The name and the field managers must show that only the REST API
 * has written it. It must have been revoked for 30 days. It is kept if the pair has other Activations because it keeps
 * the pair closed.
 *
 * @param objects all Activations of the pair
 * @param nowMs current time in milliseconds since the epoch
 */
export function planRemoval(pair: Pair, objects: readonly OwnedActivation[], nowMs: number): Removal {
  const [object, ...siblings] = objects;
  if (object === undefined || siblings.length > 0 || object.spec.revoked !== true) return 'never';
  const writers = managedFieldsOf(object);
  // Objects managed in Git must never be removed, because they would be recreated.
  const own =
    object.metadata.name === restName(pair) && writers.every(({ manager }) => manager === FIELD_MANAGER.facade);
  const times = writers.map(({ time = '' }) => Date.parse(time));
  // Revoking is the last write the REST API makes, so we can use its time here.
  const dueMs = Math.max(...times) + KEEP_REVOKED_MS;
  if (!own || !Number.isFinite(dueMs)) return 'never';
  return dueMs <= nowMs ? 'now' : { notBeforeMs: dueMs };
}

interface RemovalDeps {
  readonly caches: Pick<Caches, 'Activation' | 'Workspace'>;
  /** Gets the Activations of a pair using a quorum read. */
  readonly readPair: (pair: Pair) => Promise<readonly OwnedActivation[]>;
  readonly remove: KubeClient['remove'];
  /** Returns the current time as the number of milliseconds since the epoch. */
  readonly wallMs: () => number;
}

function pairOf({ metadata, spec }: Cached<'Activation'>): Pair {
  return { namespace: metadata.namespace as string, integration: spec.integration, groupKey: spec.groupKey };
}

/**
 * Creates a function to remove Activations revoked through the REST API more than 30 days ago. The gates of these
 * Activations are already closed. Removing the objects does not open them.
 */
export function removeRevoked({ caches, readPair, remove, wallMs }: RemovalDeps) {
  /** When an object should next be read from the API server, by UID. */
  let notBefore = new Map<string, number>();

  /**
   * Returns true if this Activation may be removed. Only uses the cache, which contains the creation time and the time
   * of the Effective condition, but not the time of the revocation.
   */
  function isCandidate(activation: Cached<'Activation'>, nowMs: number): boolean {
    const { metadata, spec, status } = activation;
    if (spec.revoked !== true || metadata.deletionTimestamp !== undefined) return false;
    const pair = pairOf(activation);
    if (isPaused(caches, pair.namespace)) return false;
    const since = findCondition(status?.conditions, 'Effective')?.lastTransitionTime;
    const isYoung = (time: string | undefined) => time !== undefined && Date.parse(time) + KEEP_REVOKED_MS > nowMs;
    if (isYoung(metadata.creationTimestamp) || isYoung(since)) return false;
    const siblings = caches.Activation.store.byIndex('pair', pairKeyOf(activation));
    return siblings.length === 1 && metadata.name === restName(pair);
  }

  /** Looks at each Activation in a separate piece, because there may be 100,000 of them. */
  function* findCandidates(nowMs: number): Steps<Cached<'Activation'>[]> {
    const found: Cached<'Activation'>[] = [];
    for (const activation of caches.Activation.store.values()) {
      if (isCandidate(activation, nowMs)) found.push(activation);
      yield;
    }
    return found;
  }

  return async (_key: string, { signal, log }: Attempt): Promise<{ requeueAfterMs: number }> => {
    const nowMs = wallMs();
    const asked = notBefore;
    notBefore = new Map();
    let removed = 0;
    for (const activation of await inSlices(findCandidates(nowMs))) {
      const { metadata } = activation;
      const knownMs = asked.get(metadata.uid) ?? 0;
      if (knownMs > nowMs) {
        notBefore.set(metadata.uid, knownMs);
        continue;
      }
      signal.throwIfAborted();
      // Check the Activation again because it may have changed while others were removed. For example, the workspace
      // may have been paused.
      if (!isCandidate(activation, nowMs)) continue;
      const pair = pairOf(activation);
      const objects = await readPair(pair);
      const answer = planRemoval(pair, objects, nowMs);
      if (answer === 'never') continue;
      if (answer !== 'now') {
        notBefore.set(metadata.uid, answer.notBeforeMs);
        continue;
      }
      const { uid, resourceVersion } = (objects[0] as OwnedActivation).metadata;
      try {
        if (await remove(resourceOf('Activation'), metadata, { uid, resourceVersion })) removed++;
      } catch (error) {
        // The Activation was changed in the meantime. For example, it may have been activated again.
        if (!isKubeError(error, 409)) throw error;
      }
    }
    if (removed > 0) log.info({ removed }, 'removed activations that were revoked 30 days ago');
    return { requeueAfterMs: SEARCH_EVERY_MS };
  };
}
