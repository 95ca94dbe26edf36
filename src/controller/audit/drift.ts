import type { PatchOp, RoutesPlan } from '../../redis/control-plan.ts';

/**
 * The parts of the control state that are compared. They are used as labels of the metric and are also included in the
 * Event.
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
  'gate',
  'membership',
  'account',
] as const;
export type Drifted = (typeof DRIFTED)[number];

/** A difference between the data in Redis and the last state that was written. */
export interface Difference {
  /** Identifies the difference, so that it can be found again in a second comparison. */
  readonly id: string;
  readonly what: Drifted;
  /** The pair that needs to be repaired. If this is not set, the routes of the tenant are repaired. */
  readonly pair?: { readonly integration: string; readonly groupKey: string };
  /** True if Redis contains an open gate that is not opened by an object in the caches. */
  readonly removes: boolean;
}

/** These fields contain the time of the repair, so they are ignored in the comparison. */
const MOMENTARY = new Set(['since', 'skipTo']);

/** Returns the changes of a plan that have not been written yet. There is one difference for each key. */
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

/** Returns the fields that are written or deleted by the operation. */
function fieldsOf({ command, args }: PatchOp): string[] {
  if (command === 'HDEL') return args.map(field => `-${field}`);
  if (command !== 'HSET') return [];
  return args.flatMap((field, i) => (i % 2 === 1 || MOMENTARY.has(String(field)) ? [] : [`${field}=${args[i + 1]}`]));
}

/**
 * Returns the part of the control state that a key belongs to. This is determined by the tag and the word after it. For
 * example, `{i:int_…}:s:sub_…` belongs to a subscription.
 */
function whatOf(key: string): Drifted {
  const [, slot, kind] = /^\{(\w):.*?\}:(\w+)/.exec(key) ?? [];
  if (slot === 'q') return 'queue';
  if (slot === 'i') return kind === 's' ? 'subscription' : 'integration';
  if (kind === 'keys' || kind === 'index') return kind;
  return kind === 'subs' ? 'subscribers' : 'tenant';
}

/**
 * Returns the differences that are found in both comparisons. Other differences are ignored, because they were caused
 * by writes in progress.
 */
export function inBoth(first: readonly Difference[], second: readonly Difference[]): Difference[] {
  const ids = new Set(first.map(({ id }) => id));
  return second.filter(({ id }) => ids.has(id));
}
