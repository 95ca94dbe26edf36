import type { AccountSpec } from '../../../src/api/kinds/account.ts';
import { publicId } from '../../../src/core/ids/ids.ts';

export const ACCOUNTS = ['main', 'small'] as const;
export type AccountName = (typeof ACCOUNTS)[number];

/** Who pays for what a tenant publishes, and for what its partner replays: never the same. */
export const PAYERS: Readonly<Record<string, AccountName>> = {
  acme: 'main',
  'acme-partner': 'small',
  bolt: 'small',
  'bolt-partner': 'main',
};

/** What they have at first. */
export const PLANS: Readonly<Record<AccountName, AccountSpec>> = {
  main: { plan: 'Metered', includedTokens: 10, owners: [] },
  small: { plan: 'Free', includedTokens: 12, owners: [] },
};

/** `acc_…` of who pays for a workspace. */
export function payerOf(workspace: string): string {
  return accountId(PAYERS[workspace] as AccountName);
}

export function accountId(name: AccountName): string {
  return publicId('Account', '', name);
}
