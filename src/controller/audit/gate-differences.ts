import type { Cached, Caches } from '../caches/caches.ts';
import { pairKey } from '../caches/caches.ts';
import { isOpen } from '../kinds/activation/open-gates.ts';
import type { Difference } from './drift.ts';

/** The maximum number of pairs to repair individually. If there are more differences, the whole tenant is repaired. */
const MOST_PAIRS = 1_000;

/** A place in Redis used to store open group keys: either the record of an integration or a part of a stream. */
export type Place = 'activation' | 'part-activation';

/** Returns the Activations of a pair that are in the cache. */
function activationsOf(
  { Activation }: Pick<Caches, 'Activation'>,
  namespace: string,
  integration: string,
  groupKey: string,
): readonly Cached<'Activation'>[] {
  return Activation.store.byIndex('pair', pairKey(namespace, integration, groupKey));
}

/**
 * Collects all group keys of a tenant for which Redis and the objects are different.
 *
 * @param names integration names by id (`int_…`), undefined if the object does not exist.
 */
export function createGateDifferences(
  deps: {
    readonly caches: Pick<Caches, 'Workspace' | 'Activation'>;
    /**
     * Returns true if the pair is in the queue or is waiting for a retry. In this case, we expect that there is a
     * difference.
     */
    readonly isPending: (pair: string) => boolean;
  },
  namespace: string,
  names: ReadonlyMap<string, string | undefined>,
) {
  const hasWorker = deps.caches.Workspace.store.get(namespace) !== undefined;
  const differences: Difference[] = [];
  return {
    /**
     * Adds a differing group key. If `removes` is set, the group key only exists in Redis. If it is not set, the group
     * key is missing from Redis.
     *
     * @param of the location, if there is more than one
     */
    add(what: Place, integration: string, groupKey: string, removes: boolean, of = ''): void {
      if (differences.length > MOST_PAIRS) return;
      const name = names.get(integration);
      const objects = name === undefined ? [] : activationsOf(deps.caches, namespace, name, groupKey);
      // The pair has changed since we read it from Redis.
      if (isOpen(objects) === removes) return;
      if (name !== undefined && deps.isPending(pairKey(namespace, name, groupKey))) return;
      const versions = objects.map(({ metadata }) => `${metadata.uid}@${metadata.generation}`).join();
      differences.push({
        id: `${what} ${removes ? '-' : '+'} ${of}${integration} ${versions} ${groupKey}`,
        what,
        removes,
        ...(name === undefined || !hasWorker ? {} : { pair: { integration: name, groupKey } }),
        ...(what === 'part-activation' ? { inPart: true } : {}),
      });
    },
    all(): Difference[] {
      if (differences.length <= MOST_PAIRS) return differences;
      // There are too many differences to return all of them. Only return a single difference for each place, always
      // using the same id. Some of them must be treated as removals because we did not keep all differences.
      return (['activation', 'part-activation'] as const).flatMap(what =>
        differences.some(each => each.what === what) ? [{ id: `many ${what}`, what, removes: true }] : [],
      );
    },
  };
}
