import type { LimitName } from '../../api/kinds/account-limits.ts';
import type { ObjectOf } from '../../api/kinds/kinds.ts';

/** Kinds whose objects are limited by number, with the name of the limit. */
export const COUNTED = {
  CatalogStream: 'streams',
  Package: 'packages',
  Integration: 'integrations',
  Activation: 'activations',
  Subscription: 'subscriptions',
  Block: 'blocks',
} as const satisfies Partial<Record<string, LimitName>>;

export type CountedKind = keyof typeof COUNTED;
export type CountedLimit = (typeof COUNTED)[CountedKind];

/** Counted kinds, in the order of the limits. */
export const COUNTED_KINDS = Object.keys(COUNTED) as readonly CountedKind[];

/** Fields of a new object that decide whether it opens or closes a route. */
export interface NewObject {
  readonly revoked?: boolean | undefined;
  readonly target?: Pick<ObjectOf<'Block'>['spec']['target'], 'kind'> | undefined;
}

/**
 * Returns the limit that refuses a new object. Undefined for objects that no limit refuses: a revoked Activation, because
 * it closes a group key, and a Block on a package, so that a producer can always close a route.
 */
export function limitForNew(kind: string, { revoked, target }: NewObject): CountedLimit | undefined {
  if (revoked === true || target?.kind === 'Package') return undefined;
  return (COUNTED as Partial<Record<string, CountedLimit>>)[kind];
}
