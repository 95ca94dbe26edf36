import type { Cached, Caches } from '../caches/caches.ts';
import { pairKey } from '../caches/caches.ts';
import { isOpen } from '../kinds/activation/open-gates.ts';
import type { Difference } from './drift.ts';

/** Maximum number of differences of single pairs. With more, the tenant is repaired as a whole. */
const MOST_PAIRS = 1_000;

/** A place in Redis with open group keys: those of an integration, or the index of the tenant. */
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
 * Collects the group keys of a tenant that differ between Redis and its objects.
 *
 * @param names `int_…` → name of the integration; undefined if the object is gone
 */
export function createGateDifferences(
  deps: {
    readonly caches: Pick<Caches, 'Workspace' | 'Activation'>;
    /** Returns whether the pair is queued or to be retried. Then a difference is no damage. */
    readonly isPending: (pair: string) => boolean;
  },
  namespace: string,
  names: ReadonlyMap<string, string | undefined>,
) {
  const hasWorker = deps.caches.Workspace.store.get(namespace) !== undefined;
  const differences: Difference[] = [];
  return {
    /** Adds a group key that is missing in Redis, or that only Redis has (`removes`). */
    add(what: Place, integration: string, groupKey: string, removes: boolean): void {
      if (differences.length > MOST_PAIRS) return;
      const name = names.get(integration);
      const objects = name === undefined ? [] : activationsOf(deps.caches, namespace, name, groupKey);
      // Changed since the probe.
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
      // Too many: one difference for all of them, with the same id in each comparison. Not all were kept, so assume
      // that some remove.
      return (['activation', 'gate'] as const).flatMap(what =>
        differences.some(each => each.what === what) ? [{ id: `many ${what}`, what, removes: true }] : [],
      );
    },
  };
}
