import type { Steps } from '../../core/routing/steps.ts';
import type { AnyObject } from '../../kube/object.ts';
import { inSlices } from '../../time/slices.ts';
import { versionOf } from './tenant.ts';

/**
 * Runs a calculation, and also returns the versions of all objects that it takes into account. Both must have been
 * created at the same time.
 */
export function withVersions<T>(
  objects: Iterable<AnyObject>,
  steps: Steps<T>,
): Promise<{ readonly seen: ReadonlySet<string>; readonly result: T }> {
  return inSlices(
    (function* () {
      const seen = new Set<string>();
      for (const object of objects) {
        seen.add(versionOf(object));
        yield;
      }
      return { seen, result: yield* steps };
    })(),
  );
}
