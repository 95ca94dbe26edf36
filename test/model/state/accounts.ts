import type { AccountSpec } from '../../../src/api/kinds/account.ts';
import { publicId } from '../../../src/core/ids/ids.ts';

export const ACCOUNTS = ['main', 'small'] as const;
export type AccountName = (typeof ACCOUNTS)[number];

/** The payers of a tenant's events and of its partner's replays, which are always different. */
export const PAYERS: Readonly<Record<string, AccountName>> = {
  acme: 'main',
  'acme-partner': 'small',
  bolt: 'small',
  'bolt-partner': 'main',
};

/** Their initial state. */
export const PLANS: Readonly<Record<AccountName, AccountSpec>> = {
  main: { plan: 'Metered', includedTokens: 10, owners: [] },
  small: { plan: 'Free', includedTokens: 12, owners: [] },
};

/** Returns the `acc_…` id of a workspace's payer. */
export function payerOf(workspace: string): string {
  return accountId(PAYERS[workspace] as AccountName);
}

export function accountId(name: AccountName): string {
  return publicId('Account', '', name);
}
