import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { defineKind } from '../kind.ts';
import { atomicList } from '../lists.ts';
import { Owner } from '../owner.ts';
import { text } from '../strings.ts';

export const AccountSpec = z
  .object({
    displayName: text({ max: 128 }).describe('Name for people. At most 128 characters.').optional(),
    owners: atomicList(Owner, { min: 1, max: 64 }).describe(
      'Owners and admins of the account and of all its workspaces, 1 to 64.',
    ),
    plan: z
      .enum(['Free', 'Metered'])
      .default('Free')
      .describe('Free (default): routing pauses when the included tokens are spent. Metered: tokens are only counted.'),
    includedTokens: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .default(10_000)
      .describe(
        "Tokens of the Free plan over the account's lifetime. Each started 16 KiB of an event costs one, for each integration. Raise it to top up. Default 10000.",
      ),
  })
  .describe('Who owns the account, and its plan.');
export type AccountSpec = z.infer<typeof AccountSpec>;

export const AccountStatus = z
  .object({ ...statusFields })
  .describe('Observed state of the account. Read balances over REST.');
export type AccountStatus = z.infer<typeof AccountStatus>;

export const Account = defineKind({
  kind: 'Account',
  plural: 'accounts',
  shortNames: ['acct'],
  scope: 'Cluster',
  description:
    'Pays for tokens: owners, plan and included tokens of one or more workspaces. You can delete it while workspaces name it: they report WaitingForAccount, with an Event, until you create it again. Meanwhile their events flow until the included tokens are spent.',
  spec: AccountSpec,
  status: AccountStatus,
  columns: [{ name: 'Plan', type: 'string', jsonPath: '.spec.plan', description: 'Free or Metered.' }],
});
export type Account = z.infer<typeof Account.schema>;
