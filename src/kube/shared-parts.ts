import type { KubeObject } from './object.ts';

/**
 * The maximum number of distinct parts to keep in memory. When this number is exceeded, all parts are removed and
 * collected again.
 */
const MOST_PARTS = 20_000;

/**
 * Returns a function that returns an equal value from an earlier call, if there is one. If there is none, it returns
 * the value itself.
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
 * Creates a function to share equal parts of objects in memory. Sharing reduces the memory usage of 100,000 activations
 * by 40%. The returned objects must not be modified.
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
