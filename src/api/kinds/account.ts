import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { defineKind } from '../kind.ts';
import { atomicList } from '../lists.ts';
import { Owner } from '../owner.ts';
import { text } from '../strings.ts';

export const AccountSpec = z
  .object({
    displayName: text({ max: 128 }).describe('A human-readable name with at most 128 characters.').optional(),
    owners: atomicList(Owner, { min: 1, max: 64 }).describe(
      'The owners and admins of the account and of all its workspaces, with 1 to 64 entries.',
    ),
    plan: z
      .enum(['Free', 'Metered'])
      .default('Free')
      .describe(
        'The plan of the account. With the Free plan, routing pauses when the included tokens are used. With the Metered plan, tokens are counted without a limit. Defaults to Free.',
      ),
    includedTokens: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .default(10_000)
      .describe(
        'The number of tokens in the Free plan for the lifetime of the account. For each integration, an event costs one token for every 16 KiB, rounded up. To add tokens, increase this value. Defaults to 10000.',
      ),
  })
  .describe('The owners of the account and its plan.');
export type AccountSpec = z.infer<typeof AccountSpec>;

export const AccountStatus = z
  .object({ ...statusFields })
  .describe('The observed state of the account. You can read balances in the REST API.');
export type AccountStatus = z.infer<typeof AccountStatus>;

export const Account = defineKind({
  kind: 'Account',
  plural: 'accounts',
  shortNames: ['acct'],
  scope: 'Cluster',
  description:
    'An Account pays for the tokens of one or more workspaces. It contains the owners, the plan and the included tokens. You can delete an Account that workspaces refer to. In this case, the workspaces report WaitingForAccount and record an Event until you create the Account again. Their events continue to flow until the included tokens are used.',
  spec: AccountSpec,
  status: AccountStatus,
  columns: [{ name: 'Plan', type: 'string', jsonPath: '.spec.plan', description: 'The plan, either Free or Metered.' }],
});
export type Account = z.infer<typeof Account.schema>;
