import { GROUP } from '../../../api/group-version.ts';
import { KINDS } from '../../../api/kinds/kinds.ts';
import { COUNTED, COUNTED_KINDS } from '../../../core/limits/counted-limits.ts';
import { type Limits, lowest } from '../../../core/limits/limits.ts';
import type { Quota } from './quota.ts';

/**
 * Kinds without a quota. Both can close a route, and a quota would refuse this as well: it doesn't know a revoked
 * Activation from an open one.
 */
const CLOSING: readonly string[] = ['Activation', 'Block'];

/**
 * Returns the quota for each workspace of an account, from the limits in its spec. Defaults of the plan are left out, so
 * that namespaces only have a quota if an administrator, or `SLUICE_INVITED_LIMITS`, has limited the account.
 */
export function quotaOfLimits(limits: Limits = {}, ceilings: Limits = {}): Quota {
  const entries = COUNTED_KINDS.filter(kind => !CLOSING.includes(kind)).flatMap(kind => {
    const limit = limits[COUNTED[kind]];
    if (limit === undefined) return [];
    return [[`count/${KINDS[kind].plural}.${GROUP}`, String(lowest(limit, ceilings[COUNTED[kind]]))] as const];
  });
  return Object.fromEntries(entries);
}
