import type { AccountSpec } from '../../api/kinds/account.ts';
import { type AccountLimits, LIMIT_NAMES, type LimitName } from '../../api/kinds/account-limits.ts';

type Plan = AccountSpec['plan'];

/** Limits by name. There is no limit for names that are missing. */
export type Limits = Readonly<AccountLimits>;

/** Limits of an installation. */
export interface LimitPolicy {
  /** Limits of accounts on a plan, unless the account has its own. */
  readonly byPlan: Readonly<Record<Plan, Limits>>;
  /** Ceilings, which no account can exceed. */
  readonly ceilings: Limits;
}

/**
 * Defaults of each plan, unless the installation changes them. They protect a shared installation from a single
 * account. Accounts on the Free plan can be created by anyone who accepts an invitation.
 */
export const DEFAULT_LIMITS: Readonly<Record<Plan, Limits>> = {
  Free: {
    storedBytes: 1_073_741_824,
    eventsPerSecond: 1_000,
    streams: 100,
    packages: 100,
    integrations: 500,
    activations: 10_000,
    subscriptions: 1_000,
    blocks: 10_000,
    requestsPerMinute: 30_000,
    invitationMailsPerDay: 100,
  },
  Metered: {
    streams: 2_000,
    packages: 2_000,
    integrations: 50_000,
    activations: 1_000_000,
    subscriptions: 50_000,
    blocks: 1_000_000,
    requestsPerMinute: 30_000,
    invitationMailsPerDay: 10_000,
  },
};

/** Policy of an installation that has not been configured. */
export const DEFAULT_POLICY: LimitPolicy = { byPlan: DEFAULT_LIMITS, ceilings: {} };

/**
 * Returns the limits in force for an account: those of its spec, or else the defaults of its plan, but none above the
 * ceilings.
 */
export function limitsOf({ plan, limits = {} }: Pick<AccountSpec, 'plan' | 'limits'>, policy: LimitPolicy): Limits {
  const entries = LIMIT_NAMES.flatMap(name => {
    const limit = lowest(limits[name] ?? policy.byPlan[plan][name], policy.ceilings[name]);
    return limit === undefined ? [] : [[name, limit] as const];
  });
  return Object.fromEntries(entries) as Partial<Record<LimitName, number>>;
}

/** Returns the lower one of a limit and its ceiling, either of which may be missing. */
export function lowest(limit: number | undefined, ceiling: number | undefined): number | undefined {
  if (limit === undefined || ceiling === undefined) return limit ?? ceiling;
  return Math.min(limit, ceiling);
}
