import { z } from 'zod';
import { LIMIT_NAMES, AccountLimits as LIMITS, type LimitName } from '../../../api/kinds/account-limits.ts';
import { COUNTED } from '../../../core/limits/counted-limits.ts';
import type { Limits } from '../../../core/limits/limits.ts';
import { publicIdField } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { Plan } from './plan-field.ts';

/** The usage of each limit. If a name is missing, the usage is only known to each replica. */
type Use = Readonly<Partial<Record<LimitName, number>>>;

const limitField = (name: LimitName) =>
  z
    .object({
      limit: z
        .int()
        .min(0)
        .nullable()
        .meta({ description: 'The limit in force, or null if there is no limit.', example: 100 }),
      used: z.int().min(0).nullable().meta({
        description:
          'The current usage by all workspaces of the account, or null if the usage is not counted. The value may be delayed by one second.',
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
      .meta({ description: 'The limits by name, each of which applies to all workspaces of the account together.' }),
  })
  .meta({ id: 'AccountLimits' });

/** Returns all limits and their usage. */
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
    'Returns the limits in force: those of the account or the defaults of its plan, but at most those of the installation. Only an administrator can change them, in spec.limits of the Account. The usage of `eventsPerSecond` and `requestsPerMinute` is always null, because each replica counts it separately. The `RateLimit` header contains the remaining points of the replica which has sent the response.',
  cost: 5,
  answers: { 200: { description: 'The current limits and their usage.', schema: AccountLimits } },
  async handle(facade, { account }) {
    const { limits } = facade;
    const { name, object } = account;
    const counts = Object.fromEntries(Object.values(COUNTED).map(limit => [limit, limits.countOf(name, limit)]));
    const [storedBytes, invitationMailsPerDay] = await Promise.all([
      facade.readStoredBytes(name),
      fromRedis(facade.mails.countOf(account.publicId, facade.nowMs())),
    ]);
    const use = { ...counts, storedBytes, invitationMailsPerDay };
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
