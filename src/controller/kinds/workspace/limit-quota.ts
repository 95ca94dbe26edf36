import { GROUP } from '../../../api/group-version.ts';
import { KINDS } from '../../../api/kinds/kinds.ts';
import { COUNTED, COUNTED_KINDS } from '../../../core/limits/counted-limits.ts';
import { type Limits, lowest } from '../../../core/limits/limits.ts';
import type { Quota } from './quota.ts';

/**
 * Kinds without a quota. Both of them can be used to close a route. A quota would prevent this as well because it can't
 * distinguish between a revoked Activation and an open Activation.
 */
const CLOSING: readonly string[] = ['Activation', 'Block'];

/**
 * Returns the quota for each workspace of an account. The quota is created from the limits in the account spec, not
 * including the plan's defaults. As a result, a namespace only has a quota if the account was limited by an
 * administrator or by `SLUICE_INVITED_LIMITS`. For a kind that was just installed, Kubernetes rejects new objects in a
 * namespace with a quota for several minutes.
 */
export function quotaOfLimits(limits: Limits = {}, ceilings: Limits = {}): Quota {
  const entries = COUNTED_KINDS.filter(kind => !CLOSING.includes(kind)).flatMap(kind => {
    const limit = limits[COUNTED[kind]];
    if (limit === undefined) return [];
    return [[`count/${KINDS[kind].plural}.${GROUP}`, String(lowest(limit, ceilings[COUNTED[kind]]))] as const];
  });
  return Object.fromEntries(entries);
}
