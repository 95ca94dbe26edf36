import { expect, test } from 'vitest';
import type { Owner } from '../../../api/owner.ts';
import type { Identity } from '../../auth/identity.ts';
import { checkMembers, membersOf } from './members.ts';

const issuer = 'https://login.example.com';
const ada: Identity = { issuer, subject: 'ada', groups: ['ops'], client: undefined, scopes: new Set() };
const owner = (fields: Partial<Owner>): Owner => ({ issuer, role: 'Owner', ...fields });

test('members are listed in order, each with its role', () => {
  const listed = membersOf([owner({ subject: 'eve' }), owner({ group: 'ops' }), { issuer, subject: 'bob' }]);
  expect(listed).toEqual([
    { issuer, subject: 'bob', role: 'Admin' },
    { issuer, subject: 'eve', role: 'Owner' },
    { issuer, group: 'ops', role: 'Owner' },
  ]);
});

test.each<[string, Owner[], string | undefined]>([
  ['the caller', [owner({ subject: 'ada' })], undefined],
  ['a group of the caller', [owner({ group: 'ops' })], undefined],
  ['the caller and others', [owner({ subject: 'bob', role: 'Viewer' }), owner({ subject: 'ada' })], undefined],
  ['the caller with two roles', [owner({ subject: 'ada', role: 'Viewer' }), owner({ group: 'ops' })], undefined],
  ['only others', [owner({ subject: 'bob' })], '/members'],
  ['the caller as an Admin', [owner({ subject: 'ada', role: 'Admin' })], '/members'],
  ['the caller without a role', [{ issuer, subject: 'ada' }, owner({ subject: 'bob' })], '/members'],
  ['the caller at another issuer', [owner({ subject: 'ada', issuer: 'https://other.example' })], '/members'],
  ['another group', [owner({ group: 'sales' })], '/members'],
  ['somebody twice', [owner({ subject: 'ada' }), owner({ subject: 'ada', role: 'Viewer' })], '/members/1'],
])('a list with %s', (_, wanted, pointer) => {
  const check = () => checkMembers(ada, wanted);
  if (pointer === undefined) expect(check).not.toThrow();
  else expect(check).toThrow(expect.objectContaining({ facts: { errors: [expect.objectContaining({ pointer })] } }));
});
