import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { INSTANCE_COLUMN, INSTANCE_FIELD, INSTANCE_IS_IMMUTABLE, instanceField } from '../instance.ts';
import { defineKind } from '../kind.ts';
import { atomicList } from '../lists.ts';
import { Owner } from '../owner.ts';
import { withTransitions } from '../rules.ts';
import { text } from '../strings.ts';
import { AccountLimits } from './account-limits.ts';

export const AccountSpec = withTransitions(
  z.object({
    displayName: text({ max: 128 }).describe('A human-readable name, up to 128 characters long.').optional(),
    owners: atomicList(Owner, { min: 1, max: 64 }).describe(
      'The owners and admins for the account, as well as for all of its workspaces. Must contain between 1 and 64 entries.',
    ),
    plan: z
      .enum(['Free', 'Metered'])
      .default('Free')
      .describe(
        'The plan of the account, either Free or Metered. On the Free plan, routing pauses when the included tokens have been used up. Usage on the Metered plan is counted but unlimited. Defaults to Free.',
      ),
    includedTokens: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .default(10_000)
      .describe(
        'The total number of tokens on the Free plan, which can be increased at any time to add more tokens. For each integration that receives an event, one token per 16 KiB (rounded up) will be used. Defaults to 10000.',
      ),
    limits: AccountLimits.optional(),
    instance: instanceField(),
  }),
  INSTANCE_IS_IMMUTABLE,
).describe('Account ownership, plan, and limits.');
export type AccountSpec = z.infer<typeof AccountSpec>;

export const AccountStatus = z
  .object({
    ...statusFields,
    limits: AccountLimits.describe(
      'The limits in force. These are the limits of the spec or the defaults of the plan, but they never exceed the limits of the installation. The condition LimitReached shows which of them have been reached. The current usage is available in the REST API.',
    ).optional(),
  })
  .describe(
    'Most recently observed status of the account. This does not include the balance, which is available in the REST API.',
  );
export type AccountStatus = z.infer<typeof AccountStatus>;

export const Account = defineKind({
  kind: 'Account',
  plural: 'accounts',
  shortNames: ['acct'],
  scope: 'Cluster',
  description:
    'Account represents the payer for tokens consumed by one or more workspaces, and specifies their owners, plan, included tokens, and limits. If you delete an account that is still in use, the deletion takes effect after all of its workspaces have been deleted.',
  spec: AccountSpec,
  status: AccountStatus,
  columns: [
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan', description: 'Current plan, i.e. Free or Metered.' },
    INSTANCE_COLUMN,
  ],
  selectableFields: [INSTANCE_FIELD],
});
export type Account = z.infer<typeof Account.schema>;
