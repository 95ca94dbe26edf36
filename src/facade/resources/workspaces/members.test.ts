import { expect, test } from 'vitest';
import type { Owner } from '../../../api/owner.ts';
import type { Identity } from '../../auth/identity.ts';
import type { Route } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { checkIssuers, checkMembers, MEMBER_ROUTES, membersOf, WantedMembers } from './members.ts';

const issuer = 'https://login.example.com';
const ada: Identity = { issuer, subject: 'ada', groups: ['ops'], client: undefined, scopes: new Set() };
const owner = (fields: Partial<Owner>): Owner => ({ issuer, role: 'Owner', ...fields });

test('members are listed in order, including their role', () => {
  const listed = membersOf([owner({ subject: 'eve' }), owner({ group: 'ops' }), { issuer, subject: 'bob' }]);
  expect(listed).toEqual([
    { issuer, subject: 'bob', role: 'Admin' },
    { issuer, subject: 'eve', role: 'Owner' },
    { issuer, group: 'ops', role: 'Owner' },
  ]);
});

test.each<[string, Owner[], boolean]>([
  ['the caller', [owner({ subject: 'ada' })], true],
  ['a group of the caller', [owner({ group: 'ops' })], true],
  ['the caller and others', [owner({ subject: 'bob', role: 'Viewer' }), owner({ subject: 'ada' })], true],
  ['the caller with two roles', [owner({ subject: 'ada', role: 'Viewer' }), owner({ group: 'ops' })], true],
  ['only others', [owner({ subject: 'bob' })], false],
  ['the caller as an Admin', [owner({ subject: 'ada', role: 'Admin' })], false],
  ['the caller without a role', [{ issuer, subject: 'ada' }, owner({ subject: 'bob' })], false],
  ['the caller at another issuer', [owner({ subject: 'ada', issuer: 'https://other.example' })], false],
  ['another group', [owner({ group: 'sales' })], false],
])('a list with %s is refused', (_, wanted, accepted) => {
  const check = () => checkMembers(ada, wanted);
  if (accepted) expect(check).not.toThrow();
  else expect(check).toThrow(expect.objectContaining({ code: 'invalid_request' }));
});

test('a new member requires a configured issuer, and existing members are kept', () => {
  const elsewhere = owner({ subject: 'eve', issuer: 'https://login.example.com/' });
  const wanted = [owner({ subject: 'ada' }), { ...elsewhere, role: 'Viewer' as const }];
  expect(() => checkIssuers({ identity: ada, issuers: [issuer] }, wanted, [elsewhere])).not.toThrow();
  expect(() => checkIssuers({ identity: ada, issuers: [issuer, elsewhere.issuer] }, wanted, [])).not.toThrow();
  let refused: unknown;
  try {
    checkIssuers({ identity: ada, issuers: [issuer, 'https://sso.example.com'] }, wanted, [owner({ subject: 'ada' })]);
  } catch (error) {
    refused = error;
  }
  const detail = expect.stringContaining(`yours is ${ada.issuer}`);
  expect(refused).toMatchObject({
    code: 'invalid_request',
    facts: { errors: [{ pointer: '/members/1/issuer', detail }] },
  });
  expect(JSON.stringify(refused)).not.toContain('sso.example.com');
});

test.each<[string, unknown[], boolean]>([
  ['different fields', [owner({ subject: 'ada' }), owner({ group: 'ada' }), owner({ client: 'ada' })], true],
  [
    'the same subject at two issuers',
    [owner({ subject: 'ada' }), owner({ subject: 'ada', issuer: 'https://x.example' })],
    true,
  ],
  ['the same member twice', [owner({ subject: 'ada' }), owner({ subject: 'ada', role: 'Viewer' })], false],
  ['nobody', [], false],
  ['65 members', Array.from({ length: 65 }, (_, n) => owner({ subject: `s${n}` })), false],
  ['two fields in one', [owner({ subject: 'ada', group: 'ops' })], false],
  ['no fields', [owner({})], false],
  ['an unknown field', [{ ...owner({ subject: 'ada' }), email: 'ada@example.com' }], false],
  ['an unknown role', [{ ...owner({ subject: 'ada' }), role: 'Guest' }], false],
])('a body with %s', (_, members, valid) => {
  expect(WantedMembers.safeParse({ members }).success).toBe(valid);
});

test.each<[string, Owner[], string]>([
  ['Admin', [owner({ subject: 'ada', role: 'Admin' })], 'insufficient_role'],
  ['none', [owner({ subject: 'eve' })], 'forbidden'],
])('the members cannot be replaced by a caller whose role has changed to %s', async (_, owners, code) => {
  const account = { metadata: { name: 'acme' }, spec: { plan: 'Free', owners } };
  const facade = {
    caches: { live: async () => account },
    writer: { edit: (attempt: () => unknown) => attempt(), apply: async () => account, waitFor: async () => account },
  } as unknown as Facade;
  const replace = MEMBER_ROUTES.find(({ operation }) => operation === 'replaceMembers');
  const body = { members: [owner({ subject: 'ada' })] };
  const call = { identity: ada, account: { name: 'acme' }, body } as unknown as Parameters<Route['handle']>[1];
  await expect(replace?.handle(facade, call)).rejects.toMatchObject({ code });
});

test('the members of an account that is being deleted cannot be replaced, because this would create it again', async () => {
  const metadata = { name: 'acme', deletionTimestamp: '2026-01-31T12:00:00Z' };
  const account = { metadata, spec: { plan: 'Free', owners: [owner({ subject: 'ada' })] } };
  const applied: unknown[] = [];
  const facade = {
    caches: { live: async () => account },
    writer: {
      edit: (attempt: () => unknown) => attempt(),
      apply: async (...args: unknown[]) => (applied.push(args), account),
      waitFor: async () => account,
    },
  } as unknown as Facade;
  const replace = MEMBER_ROUTES.find(({ operation }) => operation === 'replaceMembers');
  const body = { members: [owner({ subject: 'ada' }), owner({ subject: 'eve' })] };
  const call = { identity: ada, account: { name: 'acme' }, body } as unknown as Parameters<Route['handle']>[1];
  await expect(replace?.handle(facade, call)).rejects.toMatchObject({ code: 'being_deleted' });
  expect(applied).toEqual([]);
});
