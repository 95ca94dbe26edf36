import type { AccountSpec } from '../../api/kinds/account.ts';
import { type AccountLimits, LIMIT_NAMES, type LimitName } from '../../api/kinds/account-limits.ts';

type Plan = AccountSpec['plan'];

/** The limits, by name. A missing name means that there is no limit. */
export type Limits = Readonly<AccountLimits>;

/** An installation's limits. */
export interface LimitPolicy {
  /** The limits for accounts with this plan unless the account has its own limits. */
  readonly byPlan: Readonly<Record<Plan, Limits>>;
  /** The ceilings. No account can exceed these limits. */
  readonly ceilings: Limits;
}

/**
 * The defaults for each plan. Operators can change the defaults for each installation. The defaults protect a shared
 * installation from a single account. Accounts on the Free plan can be created by anyone who accepts an invitation.
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

/** The policy of an installation without any configuration. */
export const DEFAULT_POLICY: LimitPolicy = { byPlan: DEFAULT_LIMITS, ceilings: {} };

/**
 * Returns the limits that are in force for an account. If the spec does not contain a limit, the default of the plan is
 * used. A limit can't be higher than the ceiling.
 */
export function limitsOf({ plan, limits = {} }: Pick<AccountSpec, 'plan' | 'limits'>, policy: LimitPolicy): Limits {
  const entries = LIMIT_NAMES.flatMap(name => {
    const limit = lowest(limits[name] ?? policy.byPlan[plan][name], policy.ceilings[name]);
    return limit === undefined ? [] : [[name, limit] as const];
  });
  return Object.fromEntries(entries) as Partial<Record<LimitName, number>>;
}

/** Returns `limitsOf` for a policy. The limits are calculated once for each spec object. */
export function createLimitsOf(
  policy: LimitPolicy,
): (account: { readonly spec: Parameters<typeof limitsOf>[0] }) => Limits {
  const known = new WeakMap<object, Limits>();
  return ({ spec }) => {
    const limits = known.get(spec) ?? limitsOf(spec, policy);
    known.set(spec, limits);
    return limits;
  };
}

/** Returns the lower value of a limit and its ceiling, both of which may be missing. */
export function lowest(limit: number | undefined, ceiling: number | undefined): number | undefined {
  if (limit === undefined || ceiling === undefined) return limit ?? ceiling;
  return Math.min(limit, ceiling);
}
