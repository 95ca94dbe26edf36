import type { Steps } from '../../core/routing/steps.ts';
import type { AnyObject } from '../../kube/object.ts';
import { inSlices } from '../../time/slices.ts';

/** A Subscription that requires a salt for its endpoint. */
type Salted = AnyObject & { readonly status?: { readonly signing?: { readonly salt?: string } } };

/**
 * Returns the object version. The version changes with the spec, the deletion timestamp, or the finalizers, and when a
 * salt is added to a Subscription.
 */
export function versionOf(object: AnyObject): string {
  const { uid, generation, deletionTimestamp, finalizers } = object.metadata;
  const salt = (object as Salted).status?.signing?.salt === undefined ? '' : '+';
  return `${uid}@${generation ?? 0}${deletionTimestamp === undefined ? '' : '-'}${finalizers?.length ?? 0}${salt}`;
}

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
