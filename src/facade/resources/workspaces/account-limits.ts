import { z } from 'zod';
import { LIMIT_NAMES, AccountLimits as LIMITS, type LimitName } from '../../../api/account-limits.ts';
import { COUNTED } from '../../../core/limits/counted-limits.ts';
import type { Limits } from '../../../core/limits/limits.ts';
import { publicIdField } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { Plan } from './plan-field.ts';

/** Use of each limit. Names that are missing aren't counted. */
type Use = Readonly<Partial<Record<LimitName, number>>>;

const limitField = (name: LimitName) =>
  z
    .object({
      limit: z.int().min(0).nullable().meta({ description: 'Limit in force. Null if there is none.', example: 100 }),
      used: z.int().min(0).nullable().meta({
        description:
          'Current use by all workspaces of the account together. May lag behind by a second. Null if the use is not counted.',
        example: 3,
      }),
    })
    .meta({ description: LIMITS.shape[name].unwrap().description ?? '' });

const AccountLimits = z
  .object({
    accountPublicId: publicIdField('Account'),
    plan: Plan,
    limits: z
      .object(Object.fromEntries(LIMIT_NAMES.map(name => [name, limitField(name)])))
      .meta({ description: 'Limits by name, each of which holds for all workspaces of the account together.' }),
  })
  .meta({ id: 'AccountLimits' });

/** Returns each limit with its use. */
export function limitEntries(limits: Limits, use: Use): Record<string, { limit: number | null; used: number | null }> {
  return Object.fromEntries(LIMIT_NAMES.map(name => [name, { limit: limits[name] ?? null, used: use[name] ?? null }]));
}

const getLimits = defineRoute({
  method: 'GET',
  path: '/waas/accounts/{account}/limits',
  access: 'account',
  scope: 'waas:read',
  operation: 'getLimits',
  tag: 'Accounts',
  summary: 'Retrieve the limits of an account',
  description:
    'Returns the limits in force: those set for the account, or else the defaults of its plan, but none above the ceilings of the installation. Only an administrator can change them, in spec.limits of the Account.',
  answers: { 200: { description: 'Current limits and their use.', schema: AccountLimits } },
  async handle({ limits }, { account }) {
    const { name, object } = account;
    const use = Object.fromEntries(Object.values(COUNTED).map(limit => [limit, limits.countOf(name, limit)]));
    return {
      status: 200,
      body: {
        accountPublicId: account.publicId,
        plan: object.spec.plan,
        limits: limitEntries(limits.of(object), use),
      } satisfies z.output<typeof AccountLimits>,
    };
  },
});

export const LIMIT_ROUTES = [getLimits];
