import type { Cached, Caches } from '../caches/caches.ts';
import { pairKey } from '../caches/caches.ts';
import { isOpen } from '../kinds/activation/open-gates.ts';
import type { Difference } from './drift.ts';

/**
 * The maximum number of pairs that are repaired separately. If there are more differences, the whole tenant is
 * repaired.
 */
const MOST_PAIRS = 1_000;

/** A place in Redis that contains open group keys. This is either an integration or the index of the tenant. */
export type Place = 'activation' | 'gate';

/** Returns the Activations of a pair from the caches. */
export function activationsOf(
  { Activation }: Pick<Caches, 'Activation'>,
  namespace: string,
  integration: string,
  groupKey: string,
): readonly Cached<'Activation'>[] {
  return Activation.store.byIndex('pair', pairKey(namespace, integration, groupKey));
}

/**
 * Collects the group keys of a tenant that are different in Redis and in its objects.
 *
 * @param names the name of each integration by id (`int_…`). The name is undefined if the object does not exist.
 */
export function createGateDifferences(
  deps: {
    readonly caches: Pick<Caches, 'Workspace' | 'Activation'>;
    /** Returns true if the pair is queued or will be retried. In this case, a difference is expected. */
    readonly isPending: (pair: string) => boolean;
  },
  namespace: string,
  names: ReadonlyMap<string, string | undefined>,
) {
  const hasWorker = deps.caches.Workspace.store.get(namespace) !== undefined;
  const differences: Difference[] = [];
  return {
    /**
     * Adds a group key that is different. If `removes` is set, the group key only exists in Redis. Otherwise, it is
     * missing from Redis.
     */
    add(what: Place, integration: string, groupKey: string, removes: boolean): void {
      if (differences.length > MOST_PAIRS) return;
      const name = names.get(integration);
      const objects = name === undefined ? [] : activationsOf(deps.caches, namespace, name, groupKey);
      // The pair has changed since it was read from Redis.
      if (isOpen(objects) === removes) return;
      if (name !== undefined && deps.isPending(pairKey(namespace, name, groupKey))) return;
      const versions = objects.map(({ metadata }) => `${metadata.uid}@${metadata.generation}`).join();
      differences.push({
        id: `${what} ${removes ? '-' : '+'} ${integration} ${versions} ${groupKey}`,
        what,
        removes,
        ...(name === undefined || !hasWorker ? {} : { pair: { integration: name, groupKey } }),
      });
    },
    all(): Difference[] {
      if (differences.length <= MOST_PAIRS) return differences;
      // There are too many differences, so we return one difference for each place. It has the same id in each
      // comparison. We must assume that some of the differences are removals, because not all of them were kept.
      return (['activation', 'gate'] as const).flatMap(what =>
        differences.some(each => each.what === what) ? [{ id: `many ${what}`, what, removes: true }] : [],
      );
    },
  };
}
