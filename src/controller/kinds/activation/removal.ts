import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { activationObjectName } from '../../../core/ids/object-names.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { type Cached, pairKey, resourceOf, type World } from '../../caches/caches.ts';
import { isPaused } from '../../context/paused.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { ReconcileContext } from '../../engine/keyed-controller.ts';
import type { Pair } from './reconcile.ts';

/** How long a revoked activation of the REST interface is kept: until then it shows that, and since when. */
export const KEEP_REVOKED_MS = 30 * 24 * 60 * 60 * 1_000;

/** How often it is looked for what was kept long enough. */
const LOOK_EVERY_MS = 60 * 60 * 1_000;

/** An activation as the API server has it, with who wrote what of it. */
export type OwnedActivation = Pick<Cached<'Activation'>, 'spec'> & {
  readonly metadata: AnyObject['metadata'] & {
    readonly managedFields?: readonly {
      readonly manager?: string;
      readonly subresource?: string;
      /** RFC 3339: when the manager changed one of its fields last. */
      readonly time?: string;
    }[];
  };
};

/** The name of the one object of a pair that the REST interface writes. */
export function restName({ namespace, integration, groupKey }: Pair): string {
  return activationObjectName(namespace, integration, groupKey);
}

export type Removal = 'never' | 'now' | { readonly notBeforeMs: number };

/**
 * Whether the object may go: it is REST's own, as its name and its writers say, revoked for 30 days, and alone. With a
 * sibling it stays, for it is what keeps the pair closed.
 *
 * @param objects all of the pair
 * @param nowMs ms since the epoch
 */
export function planRemoval(pair: Pair, objects: readonly OwnedActivation[], nowMs: number): Removal {
  const [object, ...siblings] = objects;
  if (object === undefined || siblings.length > 0 || object.spec.revoked !== true) return 'never';
  const { name, managedFields = [] } = object.metadata;
  const writers = managedFields.filter(({ subresource }) => subresource === undefined);
  // Somebody who keeps it in Git would make it again.
  const own = name === restName(pair) && writers.every(({ manager }) => manager === FIELD_MANAGER.facade);
  const times = writers.map(({ time = '' }) => Date.parse(time));
  // Revoking is the last thing that REST writes.
  const dueMs = Math.max(...times) + KEEP_REVOKED_MS;
  if (!own || !Number.isFinite(dueMs)) return 'never';
  return dueMs <= nowMs ? 'now' : { notBeforeMs: dueMs };
}

export interface RemovalDeps {
  readonly world: Pick<World, 'Activation' | 'Workspace'>;
  /** All objects of a pair, as the quorum has them. */
  readonly readPair: (pair: Pair) => Promise<readonly OwnedActivation[]>;
  readonly remove: KubeClient['remove'];
  /** ms since the epoch */
  readonly wallMs: () => number;
}

/** Removes what REST revoked long ago. The gate is closed by then, and stays so without the object. */
export function removeRevoked({ world, readPair, remove, wallMs }: RemovalDeps) {
  /** By UID, those that the API server was asked about: not again before that time. */
  let notBefore = new Map<string, number>();

  /** By what the cache knows; not when exactly it was revoked, but since when it is there and nothing is routed. */
  function isCandidate({ metadata, spec, status }: Cached<'Activation'>, pair: Pair, nowMs: number): boolean {
    if (spec.revoked !== true || metadata.deletionTimestamp !== undefined || isPaused(world, pair.namespace))
      return false;
    const since = findCondition(status?.conditions, 'Effective')?.lastTransitionTime;
    const isYoung = (time: string | undefined) => time !== undefined && Date.parse(time) + KEEP_REVOKED_MS > nowMs;
    if (isYoung(metadata.creationTimestamp) || isYoung(since)) return false;
    const siblings = world.Activation.store.byIndex('pair', pairKey(pair.namespace, pair.integration, pair.groupKey));
    return siblings.length === 1 && metadata.name === restName(pair);
  }

  return async (_key: string, { signal, log }: ReconcileContext): Promise<{ requeueAfterMs: number }> => {
    const nowMs = wallMs();
    const asked = notBefore;
    notBefore = new Map();
    let removed = 0;
    for (const activation of world.Activation.store.values()) {
      const { metadata, spec } = activation;
      const pair = { namespace: metadata.namespace as string, integration: spec.integration, groupKey: spec.groupKey };
      if (!isCandidate(activation, pair, nowMs)) continue;
      signal.throwIfAborted();
      const knownMs = asked.get(metadata.uid) ?? 0;
      if (knownMs > nowMs) {
        notBefore.set(metadata.uid, knownMs);
        continue;
      }
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
        // Activated again in this moment.
        if (!isKubeError(error, 409)) throw error;
      }
    }
    if (removed > 0) log.info({ removed }, 'activations that were revoked 30 days ago are removed');
    return { requeueAfterMs: LOOK_EVERY_MS };
  };
}
