import type { PatchOp, RoutesPlan } from '../../record/control-plan.ts';

/**
 * The parts of the control state being compared. These are used as metric labels, and are also included in the Event.
 */
export const DRIFTED = [
  'tenant',
  'keys',
  'subscribers',
  'index',
  'queue',
  'integration',
  'subscription',
  'ready',
  'activation',
  'membership',
  'account',
  'part',
  'part-row',
  'part-endpoint',
  'part-activation',
  'part-list',
] as const;
export type Drifted = (typeof DRIFTED)[number];

/** A difference between Redis and the last write. */
export interface Difference {
  /** Identifies the difference so it can be recognized in a second comparison. */
  readonly id: string;
  readonly what: Drifted;
  /** Pair to repair. If not set, the tenant's routes will be repaired instead. */
  readonly pair?: { readonly integration: string; readonly groupKey: string };
  /** Whether the routes are repaired even though the pair is set, because the pair itself is correct. */
  readonly inPart?: true;
  /** Whether Redis contains an open gate that no object in the caches opens. */
  readonly removes: boolean;
}

/** Holds the time of the repair and must therefore be ignored when comparing. */
const MOMENTARY = new Set(['since']);

/** Returns the plan's changes that have yet to be written, one difference per key. */
export function differencesOfPlan({ patches, ready }: Pick<RoutesPlan, 'patches' | 'ready'>): Difference[] {
  const differences: Difference[] = [];
  for (const { meta } of ready) differences.push({ id: `ready ${meta}`, what: 'ready', removes: false });
  const byKey = Map.groupBy(
    patches.flatMap(({ ops }) => ops),
    ({ key }) => key,
  );
  for (const [key, ops] of byKey) {
    const fields = ops.flatMap(fieldsOf);
    if (fields.length > 0) differences.push({ id: `${key} ${fields.join(' ')}`, what: whatOf(key), removes: false });
  }
  return differences;
}

/** Returns the fields that this operation writes or deletes. */
function fieldsOf({ command, args }: PatchOp): string[] {
  if (command === 'HDEL') return args.map(field => `-${field}`);
  if (command !== 'HSET') return [];
  return args.flatMap((field, i) => (i % 2 === 1 || MOMENTARY.has(String(field)) ? [] : [`${field}=${args[i + 1]}`]));
}

/**
 * Returns the part of the control state that a key belongs to, based on its tag and the word following it. For example,
 * `{i:int_…}:s:sub_…` belongs to a subscription.
 */
function whatOf(key: string): Drifted {
  const [, slot, kind] = /^\{(\w):.*?\}:(\w+)/.exec(key) ?? [];
  if (slot === 'q') return 'queue';
  if (slot === 'i') return kind === 's' ? 'subscription' : 'integration';
  if (kind === 'keys' || kind === 'index') return kind;
  return kind === 'subs' ? 'subscribers' : 'tenant';
}

/**
 * Returns only the differences found in both comparisons. Anything else was caused by in-flight writes and can be
 * ignored.
 */
export function inBoth(first: readonly Difference[], second: readonly Difference[]): Difference[] {
  const ids = new Set(first.map(({ id }) => id));
  return second.filter(({ id }) => ids.has(id));
}
