import type { LimitName } from '../../api/kinds/account-limits.ts';
import type { ObjectOf } from '../../api/kinds/kinds.ts';

/** Kinds with a limited number of objects, including the name of each limit. */
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

/** The counted kinds, in the same order as the limits. */
export const COUNTED_KINDS = Object.keys(COUNTED) as readonly CountedKind[];

/** The fields of a new object that determine whether it opens or closes a route. */
export interface NewObject {
  readonly revoked?: boolean | undefined;
  readonly target?: Pick<ObjectOf<'Block'>['spec']['target'], 'kind'> | undefined;
}

/** Returns true if an object uses its limit. Revoked Activations don't use it, because they do not open anything. */
export function isInUse(limit: CountedLimit, object: unknown): boolean {
  return limit !== 'activations' || (object as { readonly spec?: NewObject } | undefined)?.spec?.revoked !== true;
}

/**
 * Returns the number of objects of a limit that an account can have, including objects that don't use the limit.
 * Revoked Activations are kept for 30 days, so an account that continuously activates and revokes could otherwise store
 * any number of them.
 */
export function mostStored(limit: CountedLimit, most: number): number {
  return limit === 'activations' ? 2 * most : most;
}

/**
 * Returns the limit that applies to a new object. Undefined if the object can't be rejected by a limit. For example, a
 * revoked Activation closes a group key. A Block on a package must always be possible, so that a producer can close a
 * route.
 */
export function limitForNew(kind: string, { revoked, target }: NewObject): CountedLimit | undefined {
  if (revoked === true || target?.kind === 'Package') return undefined;
  return (COUNTED as Partial<Record<string, CountedLimit>>)[kind];
}
