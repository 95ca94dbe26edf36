import { expect, test } from 'vitest';
import { LIMIT_NAMES } from '../../api/kinds/account-limits.ts';
import { KINDS } from '../../api/kinds/kinds.ts';
import { COUNTED, limitForNew } from './counted-limits.ts';

test.each([
  ['CatalogStream', {}, 'streams'],
  ['Package', {}, 'packages'],
  ['Integration', {}, 'integrations'],
  ['Activation', {}, 'activations'],
  ['Activation', { revoked: false }, 'activations'],
  ['Subscription', {}, 'subscriptions'],
  ['Block', { target: { kind: 'CatalogStream' } }, 'blocks'],
] as const)('a new %s %j counts towards a limit', (kind, spec, limit) => {
  expect(limitForNew(kind, spec)).toBe(limit);
});

test.each([
  ['Activation', { revoked: true }],
  ['Block', { target: { kind: 'Package' } }],
  ['Workspace', {}],
  ['Account', {}],
] as const)('a new %s %j is not limited', (kind, spec) => {
  expect(limitForNew(kind, spec)).toBeUndefined();
});

test('every kind in the namespace of a workspace is counted', () => {
  const clusterWide = ['Account', 'Workspace'];
  expect(Object.keys(COUNTED).toSorted()).toEqual(
    Object.keys(KINDS)
      .filter(kind => !clusterWide.includes(kind))
      .toSorted(),
  );
  expect(LIMIT_NAMES).toEqual(expect.arrayContaining(Object.values(COUNTED)));
});
