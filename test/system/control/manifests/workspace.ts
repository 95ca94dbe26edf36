import { casesOf } from './case.ts';

const { accepts, refuses, acceptsChange, refusesChange, instanceCases } = casesOf('Workspace', { account: 'acme' });

const sha256 = 'a'.repeat(64);
const SYSTEM = 'metadata.name cannot be default, kube-* or sluice-*';

const EXPIRY_TIMES = [
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999999-23:59',
  '2026-06-30t00:00:00z',
  '2026-06-30T00:00:00.5+14:00',
];
/** The API server accepts most of these times for the format date-time. */
const NO_TIMES = [
  '2026-06-30T00:00:00+24:00',
  '2026-06-30T00:00:00+23:60',
  '2026-06-30T23:59:60Z',
  '2026-06-30T00:00:00,5Z',
  '2026-06-30T00:00:00x123Z',
  '2026-06-30T00:00:00ZT',
  '2026-06-30T24:00:00Z',
  '2026-13-30T00:00:00Z',
  '2026-06-30T00:00:00',
  '2026-06-30',
];

export const workspaceCases = [
  accepts('an account only', {}),
  accepts('every field', {
    owners: [{ issuer: 'https://login.example.com', client: 'acme-shop', role: 'Admin' }],
    producer: true,
    instance: 'blue',
    ingressKeys: [
      { id: 'shop-2026', sha256 },
      { id: 'shop-2025', sha256, expiresAt: '2026-06-30T00:00:00Z' },
    ],
  }),
  accepts('a name that only looks like one of the system', {}, { name: 'kubernetes-shop', serverOnly: true }),
  refuses('the namespace default', {}, SYSTEM, { name: 'default', serverOnly: true }),
  refuses('a namespace of Kubernetes', {}, SYSTEM, { name: 'kube-system', serverOnly: true }),
  refuses('a namespace of ours', {}, SYSTEM, { name: 'sluice-system', serverOnly: true }),
  refuses('no account', { account: undefined }, 'spec.account: Required value'),
  refuses(
    'a key with a short hash',
    { ingressKeys: [{ id: 'a', sha256: 'abc' }] },
    'must be 64 lowercase hexadecimal digits',
  ),
  refuses('a key whose id has a space', { ingressKeys: [{ id: 'a b', sha256 }] }, 'between them, such as key-1'),
  ...EXPIRY_TIMES.map(expiresAt =>
    accepts(`a key until ${expiresAt}`, { ingressKeys: [{ id: 'a', sha256, expiresAt }] }),
  ),
  ...NO_TIMES.map(expiresAt =>
    refuses(`a key until ${expiresAt}`, { ingressKeys: [{ id: 'a', sha256, expiresAt }] }, 'expiresAt'),
  ),
  refuses(
    'a key in the clear',
    { ingressKeys: [{ id: 'a', sha256, key: 'x' }] },
    'unknown field "spec.ingressKeys[0].key"',
    {
      serverOnly: true,
    },
  ),
  refuses(
    'two keys of one id',
    {
      ingressKeys: [
        { id: 'a', sha256 },
        { id: 'a', sha256 },
      ],
    },
    'spec.ingressKeys[1]: Duplicate value',
    { serverOnly: true },
  ),
  refuses(
    '17 keys',
    { ingressKeys: Array.from({ length: 17 }, (_, i) => ({ id: `k${i}`, sha256 })) },
    'must have at most 16 items',
  ),
  acceptsChange('no longer marked as a producer', { producer: true }, { producer: false }),
  refusesChange('another account', {}, { account: 'globex' }, 'account is immutable'),
  ...instanceCases,
];
