import type { Cached, Caches } from '../caches/caches.ts';
import { pairKey } from '../caches/caches.ts';
import { isOpen } from '../kinds/activation/open-gates.ts';
import type { Difference } from './drift.ts';

/**
 * Maximum number of pairs to repair one by one. Once there are more differences than this, the whole tenant is
 * repaired.
 */
const MOST_PAIRS = 1_000;

/** A place in Redis where open group keys are kept: the record of an integration, or a part of a stream. */
export type Place = 'activation' | 'part-activation';

/** Returns the cached Activations of a pair. */
export function activationsOf(
  { Activation }: Pick<Caches, 'Activation'>,
  namespace: string,
  integration: string,
  groupKey: string,
): readonly Cached<'Activation'>[] {
  return Activation.store.byIndex('pair', pairKey(namespace, integration, groupKey));
}

/**
 * Collects group keys of a tenant for which Redis and the objects disagree.
 *
 * @param names integration names by id (`int_…`), undefined if the object does not exist.
 */
export function createGateDifferences(
  deps: {
    readonly caches: Pick<Caches, 'Workspace' | 'Activation'>;
    /** Whether the pair is queued or waiting to be retried, in which case a difference is to be expected. */
    readonly isPending: (pair: string) => boolean;
  },
  namespace: string,
  names: ReadonlyMap<string, string | undefined>,
) {
  const hasWorker = deps.caches.Workspace.store.get(namespace) !== undefined;
  const differences: Difference[] = [];
  return {
    /**
     * Adds a differing group key. With `removes` set, the group key exists only in Redis; otherwise it is missing
     * there.
     *
     * @param of location, if there are several
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
      // There are too many differences, so we return a single one per place, using the same id in each comparison.
      // Some of them must be assumed to be removals, since we did not keep them all.
      return (['activation', 'part-activation'] as const).flatMap(what =>
        differences.some(each => each.what === what) ? [{ id: `many ${what}`, what, removes: true }] : [],
      );
    },
  };
}
