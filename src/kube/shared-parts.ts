import type { KubeObject } from './object.ts';

/** Maximum number of distinct parts to keep in memory. Beyond this, they are all removed and collected again. */
const MOST_PARTS = 20_000;

/**
 * Returns a function that replaces each value with an equal one passed earlier, or returns it unchanged if there is
 * none.
 */
function createShare(): <T>(part: T) => T {
  const known = new Map<string, unknown>();
  return part => {
    if (part === undefined || part === null) return part;
    const text = JSON.stringify(part);
    const had = known.get(text);
    if (had !== undefined) return had as typeof part;
    if (known.size >= MOST_PARTS) known.clear();
    known.set(text, part);
    return part;
  };
}

/**
 * Creates a function to share equal parts of objects in memory, which saves 40% of the memory for 100,000 activations.
 * The returned objects must not be modified.
 *
 * @param ofSpec spec fields which often have the same value in many objects
 */
export function createPartSharing<T extends KubeObject<object, object>>(ofSpec: readonly string[]): (object: T) => T {
  const share = createShare();
  const shareFields = <P extends object>(of: P, fields: readonly string[]): P => {
    const shared = { ...of } as Record<string, unknown>;
    for (const field of fields) if (field in shared) shared[field] = share(shared[field]);
    return shared as P;
  };
  return object => ({
    ...object,
    metadata: shareFields(object.metadata, ['namespace', 'creationTimestamp', 'finalizers', 'labels']),
    spec: shareFields(object.spec, ofSpec),
    ...(object.status === undefined ? {} : { status: shareFields(object.status, ['conditions']) }),
  });
}
