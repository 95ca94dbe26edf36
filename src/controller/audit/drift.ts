import type { PatchOp, RoutesPlan } from '../../redis/control-plan.ts';

/** What of the control state was found changed: the label of the metric, and what the Event names. */
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

/** One thing in Redis that is not as it was written. */
export interface Difference {
  /** The same at two looks when it is the same. */
  readonly id: string;
  readonly what: Drifted;
  /** Mended by the worker of this pair; absent: by that of the tenant's routes. */
  readonly pair?: { readonly integration: string; readonly groupKey: string };
  /** An open gate that no object in the caches opens. */
  readonly removes: boolean;
}

/** Fields that follow from the moment in which a difference is mended, not from the difference. */
const MOMENTARY = new Set(['since', 'skipTo']);

/** What a plan would write where nothing should be left to write, by the key that it concerns. */
export function differencesOfPlan({ patches, ready }: Pick<RoutesPlan, 'patches' | 'ready'>): Difference[] {
  const differences: Difference[] = [];
  for (const { meta } of ready) differences.push({ id: `ready ${meta}`, what: 'ready', removes: false });
  const byKey = Map.groupBy(
    patches.flatMap(({ ops }) => ops),
    ({ key }) => key,
  );
  for (const [key, ops] of byKey) {
    const said = ops.flatMap(saidBy);
    if (said.length > 0) differences.push({ id: `${key} ${said.join(' ')}`, what: whatOf(key), removes: false });
  }
  return differences;
}

function saidBy({ command, args }: PatchOp): string[] {
  if (command === 'HDEL') return args.map(field => `-${field}`);
  if (command !== 'HSET') return [];
  return args.flatMap((field, i) => (i % 2 === 1 || MOMENTARY.has(String(field)) ? [] : [`${field}=${args[i + 1]}`]));
}

/** Of a key's tag and its first word after it: `{i:int_…}:s:sub_…` is a subscription. */
function whatOf(key: string): Drifted {
  const [, slot, kind] = /^\{(\w):.*?\}:(\w+)/.exec(key) ?? [];
  if (slot === 'q') return 'queue';
  if (slot === 'i') return kind === 's' ? 'subscription' : 'integration';
  if (kind === 'keys' || kind === 'index') return kind;
  return kind === 'subs' ? 'subscribers' : 'tenant';
}

/** What a second look found again: what is on its way in between is no damage. */
export function inBoth(first: readonly Difference[], second: readonly Difference[]): Difference[] {
  const ids = new Set(first.map(({ id }) => id));
  return second.filter(({ id }) => ids.has(id));
}
