import { expect, test } from 'vitest';
import type { Owner } from '../../api/owner.ts';
import { readIdentity } from '../auth/identity.ts';
import { accessGiven } from './access.ts';

const issuer = 'https://login.example.com';
const ada = readIdentity({ iss: issuer, sub: 'ada', client_id: 'ada', groups: ['ops'] });
const list = (...owners: Partial<Owner>[]) => ({
  spec: { owners: owners.map(owner => ({ issuer, role: 'Admin', ...owner }) as Owner) },
});

test.each([
  ['the workspace', list({ subject: 'ada' }), undefined, { role: 'Admin', of: 'workspace', by: 'subject' }],
  ['the account', list(), list({ group: 'ops' }), { role: 'Admin', of: 'account', by: 'group' }],
  ['a client', list({ client: 'ada' }), list(), { role: 'Admin', of: 'workspace', by: 'client' }],
  [
    'the stronger role',
    list({ subject: 'ada' }),
    list({ group: 'ops', role: 'Owner' }),
    { role: 'Owner', of: 'account', by: 'group' },
  ],
  ['nothing', list({ subject: 'eve' }), list({ group: 'dev' }), undefined],
] as const)('access through %s', (_what, workspace, account, given) => {
  expect(accessGiven(ada, workspace, account)).toEqual(given);
});
