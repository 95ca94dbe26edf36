import { casesOf } from './case.ts';

const issuer = 'https://login.example.com';
const ada = { issuer, subject: 'ada', role: 'Owner' };

const { accepts, refuses, acceptsChange } = casesOf('Account', { owners: [ada] });

export const accountCases = [
  accepts('owners only', {}),
  accepts('every field', {
    displayName: 'Acme GmbH',
    owners: [ada, { issuer, group: 'acme-admins', role: 'Admin' }, { issuer, client: 'ci', role: 'Admin' }],
    plan: 'Metered',
    includedTokens: 0,
  }),
  refuses('nobody', { owners: [] }, 'spec.owners'),
  refuses('no owners', { owners: undefined }, 'spec.owners: Required value'),
  refuses(
    '65 owners',
    { owners: Array.from({ length: 65 }, (_, i) => ({ ...ada, subject: `s${i}` })) },
    'must have at most 64 items',
  ),
  refuses(
    'an owner without subject, group and client',
    { owners: [{ issuer, role: 'Owner' }] },
    'must have exactly one of subject, group and client',
  ),
  refuses(
    'an owner with a subject and a group',
    { owners: [{ ...ada, group: 'admins' }] },
    'must have exactly one of subject, group and client',
  ),
  refuses('an owner without a role', { owners: [{ issuer, subject: 'ada' }] }, 'spec.owners[0].role: Required value'),
  refuses(
    'an owner without an issuer',
    { owners: [{ subject: 'ada', role: 'Owner' }] },
    'spec.owners[0].issuer: Required value',
  ),
  refuses('a plan that does not exist', { plan: 'Enterprise' }, 'supported values: "Free", "Metered"'),
  refuses('tokens below zero', { includedTokens: -1 }, 'should be greater than or equal to 0'),
  refuses('a name with a dot', {}, 'metadata.name must be a DNS label', { name: 'acme.example', serverOnly: true }),
  acceptsChange('a top-up', { includedTokens: 10_000 }, { includedTokens: 20_000 }),
];
