import type { PatchOp, RoutesPlan } from '../../record/control-plan.ts';

/** The parts of the control state being compared. The metric uses the parts as labels. The Event also includes them. */
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

/** A difference between the data in Redis and the last written state. */
export interface Difference {
  /** Identifies the difference so it can be recognized in a second comparison. */
  readonly id: string;
  readonly what: Drifted;
  /** Pair to repair. If not set, the tenant's routes will be repaired instead. */
  readonly pair?: { readonly integration: string; readonly groupKey: string };
  /** True if the routes need to be repaired even though the pair itself is correct. */
  readonly inPart?: true;
  /** True if Redis contains an open gate that is not opened by any object in the caches. */
  readonly removes: boolean;
}

/** The field with the time of the repair, which must be ignored when comparing. */
const MOMENTARY = new Set(['since']);

/** Returns all changes of the plan that have not been written yet. There is one difference for each key. */
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

/** Returns the fields that are written or deleted by this operation. */
function fieldsOf({ command, args }: PatchOp): string[] {
  if (command === 'HDEL') return args.map(field => `-${field}`);
  if (command !== 'HSET') return [];
  return args.flatMap((field, i) => (i % 2 === 1 || MOMENTARY.has(String(field)) ? [] : [`${field}=${args[i + 1]}`]));
}

/**
 * Returns the part of the control state to which a key belongs. Determined by its tag and the word after the tag. For
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
 * Only returns differences which were found by both comparisons. All other differences were caused by writes in
 * progress and can be ignored.
 */
export function inBoth(first: readonly Difference[], second: readonly Difference[]): Difference[] {
  const ids = new Set(first.map(({ id }) => id));
  return second.filter(({ id }) => ids.has(id));
}
