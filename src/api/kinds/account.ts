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
      'Who may act for the account and for all its workspaces, 1 to 64.',
    ),
    plan: z
      .enum(['Free', 'Metered'])
      .default('Free')
      .describe(
        'Free (default): distribution pauses when the included tokens are spent. Metered: tokens are only counted.',
      ),
    includedTokens: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .default(10_000)
      .describe(
        "Tokens of the Free plan over the account's lifetime, one per started 16 KiB of an event. To top up, raise it. Default 10000.",
      ),
  })
  .describe('Who owns the account, and its plan.');
export type AccountSpec = z.infer<typeof AccountSpec>;

export const AccountStatus = z
  .object({ ...statusFields })
  .describe('What the controller has made of it. Balances are read over REST.');
export type AccountStatus = z.infer<typeof AccountStatus>;

export const Account = defineKind({
  kind: 'Account',
  plural: 'accounts',
  shortNames: ['acct'],
  scope: 'Cluster',
  description:
    'Who pays: owners, plan and tokens for one or more workspaces. Nothing prevents deleting it while workspaces name it: they say WaitingForAccount, with an Event, and go on until its included tokens are spent, until it is created again.',
  spec: AccountSpec,
  status: AccountStatus,
  columns: [{ name: 'Plan', type: 'string', jsonPath: '.spec.plan', description: 'Free or Metered.' }],
});
export type Account = z.infer<typeof Account.schema>;
