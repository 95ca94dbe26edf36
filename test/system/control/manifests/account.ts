import { casesOf } from './case.ts';

const issuer = 'https://login.example.com';
const ada = { issuer, subject: 'ada', role: 'Owner' };

const { accepts, refuses, acceptsChange, instanceCases } = casesOf('Account', { owners: [ada] });

export const accountCases = [
  accepts('owners only', {}),
  accepts('every field', {
    displayName: 'Acme GmbH',
    owners: [ada, { issuer, group: 'acme-admins', role: 'Admin' }, { issuer, client: 'ci', role: 'Admin' }],
    plan: 'Metered',
    includedTokens: 0,
    limits: {
      storedBytes: Number.MAX_SAFE_INTEGER,
      eventsPerSecond: 0,
      streams: 0,
      packages: 100_000,
      integrations: 0,
      activations: 10_000_000,
      subscriptions: 0,
      blocks: 0,
      requestsPerMinute: 10,
      invitationMailsPerDay: 0,
    },
    instance: 'blue',
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
  accepts('a viewer', { owners: [ada, { issuer, group: 'auditors', role: 'Viewer' }] }),
  accepts('an owner without a role', { owners: [ada, { issuer, subject: 'bob' }] }),
  refuses(
    'a role that does not exist',
    { owners: [{ ...ada, role: 'Guest' }] },
    'supported values: "Owner", "Admin", "Viewer"',
  ),
  refuses(
    'an owner without an issuer',
    { owners: [{ subject: 'ada', role: 'Owner' }] },
    'spec.owners[0].issuer: Required value',
  ),
  refuses('an issuer with a space', { owners: [{ ...ada, issuer: 'my login' }] }, 'such as https://login.example.com'),
  refuses('a plan that does not exist', { plan: 'Enterprise' }, 'supported values: "Free", "Metered"'),
  refuses('tokens below zero', { includedTokens: -1 }, 'should be greater than or equal to 0'),
  refuses('a limit below zero', { limits: { streams: -1 } }, 'spec.limits.streams'),
  refuses('a limit that no call could keep', { limits: { requestsPerMinute: 9 } }, 'spec.limits.requestsPerMinute'),
  refuses('a limit with a unit', { limits: { storedBytes: '10Gi' } }, 'spec.limits.storedBytes'),
  acceptsChange('a lower limit', { limits: { streams: 10 } }, { limits: { streams: 1 } }),
  refuses('a name with a dot', {}, 'metadata.name must be a DNS label', { name: 'acme.example', serverOnly: true }),
  acceptsChange('a top-up', { includedTokens: 10_000 }, { includedTokens: 20_000 }),
  ...instanceCases,
];
