import { z } from 'zod';
import type { Balance } from '../../../core/events/tokens.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Role } from '../../auth/ownership.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { ROLE_MEANINGS, RoleField } from '../../contract/roles.ts';
import { defineRoute } from '../../contract/route.ts';
import { accountsOf } from '../../objects/objects-of-caller.ts';
import { fromRedis } from '../../objects/redis-failures.ts';
import { Plan } from './plan-field.ts';

const AccountEntry = z
  .object({
    publicId: publicIdField('Account'),
    name: z.string().meta({ description: "The account's name.", example: 'shop' }),
    displayName: z.string().nullable().meta({ description: "The account's display name, if it has one." }),
    plan: Plan,
    role: RoleField.meta({ description: `Your role within the account. ${ROLE_MEANINGS}` }),
  })
  .meta({ id: 'Account' });

const TokenBalance = z
  .object({
    accountPublicId: publicIdField('Account'),
    plan: Plan,
    includedTokens: z.int().min(0).meta({
      description: 'The total number of tokens on the Free plan.',
      example: 10_000,
    }),
    usedTokens: z.int().min(0).meta({
      description:
        'The number of tokens used for distribution and replays. Replays are counted immediately. Distribution may be counted up to 30 s later, or longer after a crash.',
      example: 250,
    }),
    remainingTokens: z.int().min(0).nullable().meta({
      description:
        'The number of remaining tokens, which is as delayed as `usedTokens`. On the Metered plan, it is null because there is no limit.',
      example: 9_750,
    }),
  })
  .meta({ id: 'TokenBalance' });

function accountEntry({ metadata, spec }: Cached<'Account'>, role: Role): z.output<typeof AccountEntry> {
  return {
    publicId: publicId('Account', '', metadata.name),
    name: metadata.name,
    displayName: spec.displayName ?? null,
    plan: spec.plan,
    role,
  };
}

/** Converts a balance to the response format. */
export function tokenBalance(accountPublicId: string, balance: Balance): z.output<typeof TokenBalance> {
  const { plan, includedTokens, usedTokens, remainingTokens = null } = balance;
  return { accountPublicId, plan, includedTokens, usedTokens, remainingTokens };
}

const listAccounts = defineRoute({
  method: 'GET',
  path: '/waas/accounts',
  access: 'caller',
  scope: 'waas:read',
  operation: 'listAccounts',
  tag: 'Accounts',
  summary: 'List all of your accounts',
  query: PageQuery,
  answers: { 200: { description: 'A list of accounts, sorted by name.', schema: pageOf(AccountEntry) } },
  problems: ['malformed_cursor'],
  async handle({ caches }, { identity, query }) {
    const { data, nextCursor } = paginate(
      ['accounts'],
      accountsOf(caches, identity),
      ([{ metadata }]) => metadata.name,
      query,
    );
    return { status: 200, body: { data: data.map(each => accountEntry(...each)), nextCursor } };
  },
});

const getAccount = defineRoute({
  method: 'GET',
  path: '/waas/accounts/{account}',
  access: 'account',
  scope: 'waas:read',
  operation: 'getAccount',
  tag: 'Accounts',
  summary: 'Retrieve an account',
  answers: { 200: { description: 'The requested account.', schema: AccountEntry } },
  async handle(_facade, { account }) {
    return { status: 200, body: accountEntry(account.object, account.role) };
  },
});

const getTokens = defineRoute({
  method: 'GET',
  path: '/waas/accounts/{account}/tokens',
  access: 'account',
  scope: 'waas:read',
  operation: 'getTokens',
  tag: 'Accounts',
  summary: 'Retrieve the token balance of an account',
  description:
    "Each event costs one token per 16 KiB, rounded up. The first delivery to each integration is charged to the producer's account, while replays are charged to the partner's account.",
  answers: { 200: { description: 'The current balance.', schema: TokenBalance } },
  async handle({ readBalance }, { account }) {
    const balance = await fromRedis(readBalance(account.publicId));
    // There is no balance, because the account is new or Redis has lost its data. The controller will write it in
    // either case.
    if (balance === undefined)
      throw new Refusal('unavailable', 'The balance of the account is not available in Redis yet. Try again.');
    return { status: 200, body: tokenBalance(account.publicId, balance) };
  },
});

export const ACCOUNT_ROUTES = [listAccounts, getAccount, getTokens];
