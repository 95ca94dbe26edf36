import { expect, test } from 'vitest';
import type { Owner } from '../../../api/owner.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { Facade } from '../../objects/facade.ts';
import { otherFreeAccounts, ownFreeAccount } from './accepting-account.ts';

const issuer = 'https://login.example.com';
const identity = { issuer, subject: 'ada', groups: ['staff'], client: 'web', scopes: new Set<string>() };

function account(name: string, owner: Partial<Owner>, plan: 'Free' | 'Metered' = 'Free') {
  const owners = [{ issuer, role: 'Owner' as const, ...owner }];
  return { metadata: { name, uid: name, resourceVersion: '1' }, spec: { owners, plan, includedTokens: 10_000 } };
}

test('only counts accounts that the caller owns personally', () => {
  const accounts = [
    account('own', { subject: 'ada' }),
    account('another', { subject: 'ada' }),
    account('paid', { subject: 'ada' }, 'Metered'),
    account('administered', { subject: 'ada', role: 'Admin' }),
    account('of-the-group', { group: 'staff' }),
    account('of-the-client', { client: 'web' }),
    account('of-another-issuer', { subject: 'ada', issuer: 'https://other.example.com' }),
    account('of-eve', { subject: 'eve' }),
  ];
  expect(otherFreeAccounts(accounts, identity, 'own')).toEqual([publicId('Account', '', 'another')]);
  expect(otherFreeAccounts(accounts.slice(0, 1), identity, 'own')).toEqual([]);
});

test('ignores a free account that was created for someone else, even if the caller is a member', () => {
  const name = `free-${'0'.repeat(20)}`;
  const eve: Owner = { issuer, subject: 'eve', role: 'Owner' };
  const { metadata, spec } = account(name, { subject: 'ada' });
  const shared = { metadata, spec: { ...spec, owners: [eve, ...spec.owners] } };
  expect(otherFreeAccounts([shared], identity, 'own')).toEqual([]);
  // This account was created for the caller before the root key was replaced.
  expect(otherFreeAccounts([{ metadata, spec }], identity, 'own')).toEqual([publicId('Account', '', name)]);
  const named = { metadata: { ...metadata, name: 'acme' }, spec: shared.spec };
  expect(otherFreeAccounts([named], identity, 'own')).toEqual([publicId('Account', '', 'acme')]);
});

test.each([
  ['Owner', undefined],
  ['Admin', undefined],
  ['Viewer', 'insufficient_role'],
] as const)('a caller with the role %s in the account that an earlier invitation created', async (role, code) => {
  const facade = {
    keys: { oldest: () => ({ secret: new Uint8Array(32) }) },
    caches: { live: async (_kind: string, { name }: { name: string }) => account(name, { subject: 'ada', role }) },
    writer: { edit: (attempt: () => unknown) => attempt() },
  } as unknown as Facade;
  const accepted = ownFreeAccount(facade, identity);
  if (code === undefined) expect(await accepted).toMatch(/^free-/);
  else await expect(accepted).rejects.toMatchObject({ code });
});
