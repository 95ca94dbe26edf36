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
      'The people, groups, and clients with access to the account and to all of its workspaces in the REST API. Must contain between 1 and 64 entries.',
    ),
    plan: z
      .enum(['Free', 'Metered'])
      .default('Free')
      .describe(
        "The account's plan. On the Free plan, routing pauses when the included tokens are used up. On the Metered plan, tokens are counted without a limit. Defaults to Free.",
      ),
    includedTokens: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .default(10_000)
      .describe(
        'The total number of tokens on the Free plan. To add tokens, increase it. Each integration that receives an event uses one token per 16 KiB of its body (rounded up). Defaults to 10000.',
      ),
    limits: AccountLimits.optional(),
    instance: instanceField(),
  }),
  INSTANCE_IS_IMMUTABLE,
).describe('Specifies the owners, the plan, and the limits of the account.');
export type AccountSpec = z.infer<typeof AccountSpec>;

export const AccountStatus = z
  .object({
    ...statusFields,
    limits: AccountLimits.describe(
      'The limits in force: those in the spec or the defaults of the plan, but at most those of the installation. The LimitReached condition names those that have been reached. The REST API shows the usage.',
    ).optional(),
  })
  .describe('The most recently observed status of the account. The balance is only available in the REST API.');
export type AccountStatus = z.infer<typeof AccountStatus>;

export const Account = defineKind({
  kind: 'Account',
  plural: 'accounts',
  shortNames: ['acct'],
  scope: 'Cluster',
  description:
    'Account pays for the tokens of its workspaces. It specifies their owners, plan, included tokens, and limits. An account that you delete while it is in use is kept until all of its workspaces have been deleted.',
  spec: AccountSpec,
  status: AccountStatus,
  columns: [
    { name: 'Plan', type: 'string', jsonPath: '.spec.plan', description: 'Current plan, i.e. Free or Metered.' },
    INSTANCE_COLUMN,
  ],
  selectableFields: [INSTANCE_FIELD],
});
export type Account = z.infer<typeof Account.schema>;
