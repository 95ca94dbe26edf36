import type { PatchOp, RoutesPlan } from '../../redis/control-plan.ts';

/** Parts of the control state that may differ: labels of the metric, and names in the Event. */
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

/** One difference between Redis and the last written state. */
export interface Difference {
  /** Identifies the difference across two comparisons. */
  readonly id: string;
  readonly what: Drifted;
  /** The pair whose worker repairs it; absent: the worker of the tenant's routes does. */
  readonly pair?: { readonly integration: string; readonly groupKey: string };
  /** True for an open gate that no object in the caches opens. */
  readonly removes: boolean;
}

/** Fields with the time of the repair, which are not part of the difference. */
const MOMENTARY = new Set(['since', 'skipTo']);

/** Returns what a plan would still write, as one difference for each key. */
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

/** Returns the fields that the operation writes or deletes. */
function fieldsOf({ command, args }: PatchOp): string[] {
  if (command === 'HDEL') return args.map(field => `-${field}`);
  if (command !== 'HSET') return [];
  return args.flatMap((field, i) => (i % 2 === 1 || MOMENTARY.has(String(field)) ? [] : [`${field}=${args[i + 1]}`]));
}

/** Classifies a key by its tag and the word after it: `{i:int_…}:s:sub_…` is a subscription. */
function whatOf(key: string): Drifted {
  const [, slot, kind] = /^\{(\w):.*?\}:(\w+)/.exec(key) ?? [];
  if (slot === 'q') return 'queue';
  if (slot === 'i') return kind === 's' ? 'subscription' : 'integration';
  if (kind === 'keys' || kind === 'index') return kind;
  return kind === 'subs' ? 'subscribers' : 'tenant';
}

/** Returns the differences that the second comparison found again. Others were writes in flight. */
export function inBoth(first: readonly Difference[], second: readonly Difference[]): Difference[] {
  const ids = new Set(first.map(({ id }) => id));
  return second.filter(({ id }) => ids.has(id));
}
