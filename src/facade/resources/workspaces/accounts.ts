import { z } from 'zod';
import type { Balance } from '../../../core/events/tokens.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import { mayActForAccount } from '../../auth/ownership.ts';
import { publicIdField } from '../../contract/fields.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Cached } from '../../objects/cached.ts';

const Plan = z.enum(['Free', 'Metered']).meta({
  description:
    'The plan of the account. With the Free plan, distribution pauses when the included tokens are used. With the Metered plan, tokens are counted without a limit.',
});

const AccountEntry = z
  .object({
    publicId: publicIdField('Account'),
    name: z.string().meta({ description: 'The name of the account.', example: 'shop' }),
    displayName: z.string().nullable().meta({ description: 'The display name. The value can be null.' }),
    plan: Plan,
    role: z
      .enum(['Owner', 'Admin'])
      .meta({ description: 'The role of the caller. An Admin has all permissions except changing the owners.' }),
  })
  .meta({ id: 'Account' });

const TokenBalance = z
  .object({
    accountPublicId: publicIdField('Account'),
    plan: Plan,
    includedTokens: z.int().min(0).meta({
      description: 'The number of tokens that the Free plan includes for the lifetime of the account.',
      example: 10_000,
    }),
    usedTokens: z.int().min(0).meta({
      description:
        'The number of tokens that were used for distribution and replays. The value can be delayed by a few seconds.',
      example: 250,
    }),
    remainingTokens: z.int().min(0).nullable().meta({
      description:
        'The number of remaining tokens. The value is null for the Metered plan, which does not have a limit.',
      example: 9_750,
    }),
  })
  .meta({ id: 'TokenBalance' });

function accountEntry({ metadata, spec }: Cached<'Account'>, role: 'Owner' | 'Admin'): z.output<typeof AccountEntry> {
  return {
    publicId: publicId('Account', '', metadata.name),
    name: metadata.name,
    displayName: spec.displayName ?? null,
    plan: spec.plan,
    role,
  };
}

/** Converts a balance to the answer format. */
export function tokenBalance(accountPublicId: string, balance: Balance): z.output<typeof TokenBalance> {
  const { plan, includedTokens, usedTokens, remainingTokens = null } = balance;
  return { accountPublicId, plan, includedTokens, usedTokens, remainingTokens };
}

const listAccounts = defineRoute({
  method: 'GET',
  path: '/waas/accounts',
  access: 'caller',
  operation: 'listAccounts',
  tag: 'Accounts',
  summary: 'List your accounts',
  query: PageQuery,
  answers: { 200: { description: 'A page of accounts, sorted by name.', schema: pageOf(AccountEntry) } },
  problems: ['malformed_cursor'],
  async handle({ caches }, { identity, query }) {
    const accounts = caches
      .list('Account')
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .flatMap(account => {
        const role = mayActForAccount(identity, account);
        return role === undefined ? [] : [accountEntry(account, role)];
      });
    return { status: 200, body: paginate(accounts, ({ name }) => name, query) };
  },
});

const getAccount = defineRoute({
  method: 'GET',
  path: '/waas/accounts/{account}',
  access: 'account',
  operation: 'getAccount',
  tag: 'Accounts',
  summary: 'Read one account',
  answers: { 200: { description: 'The account.', schema: AccountEntry } },
  async handle(_facade, { identity, account }) {
    const role = mayActForAccount(identity, account.object);
    if (role === undefined) throw new Refusal('forbidden');
    return { status: 200, body: accountEntry(account.object, role) };
  },
});

const getTokens = defineRoute({
  method: 'GET',
  path: '/waas/accounts/{account}/tokens',
  access: 'account',
  operation: 'getTokens',
  tag: 'Accounts',
  summary: 'Read the token balance of an account',
  description:
    "An event costs one token for every 16 KiB, rounded up. The producer's account pays for the first delivery to each integration. The partner's account pays for replays.",
  answers: { 200: { description: 'The balance.', schema: TokenBalance } },
  async handle({ readBalance }, { account }) {
    const balance = await readBalance(account.publicId).catch((cause: unknown) => {
      throw new Refusal('unavailable', { cause });
    });
    // No balance yet, either because the account is new or because Redis has lost its data. The controller will write
    // it in both cases.
    if (balance === undefined)
      throw new Refusal('unavailable', 'The balance of the account is not available in Redis yet. Try again.');
    return { status: 200, body: tokenBalance(account.publicId, balance) };
  },
});

export const ACCOUNT_ROUTES = [listAccounts, getAccount, getTokens];
