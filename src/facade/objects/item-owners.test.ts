import { expect, test } from 'vitest';
import { itemOwners } from './item-owners.ts';

const entry = (manager: string, ids: readonly string[], more: object = {}) => ({
  manager,
  operation: 'Apply',
  fieldsV1: {
    'f:spec': {
      'f:account': {},
      'f:ingressKeys': Object.fromEntries([
        ['.', {}],
        ...ids.map(id => [`k:${JSON.stringify({ id })}`, { 'f:id': {} }]),
      ]),
    },
  },
  ...more,
});
const object = {
  metadata: {
    managedFields: [
      entry('argocd', ['a', 'shared']),
      entry('sluice-facade/keys', ['b', 'shared']),
      { manager: 'sluice-controller', subresource: 'status', fieldsV1: { 'f:status': {} } },
      { manager: 'other', fieldsV1: { 'f:spec': { 'f:account': {} } } },
    ],
  },
};

test.each([
  ['a', ['argocd']],
  ['b', ['sluice-facade/keys']],
  ['shared', ['argocd', 'sluice-facade/keys']],
  ['.', []],
  ['absent', []],
])('the item %s belongs to %j', (id, owners) => {
  expect(itemOwners(object, 'ingressKeys', id)).toEqual(owners);
});

test('an object without managed fields belongs to nobody', () => {
  expect(itemOwners({ metadata: {} }, 'ingressKeys', 'a')).toEqual([]);
});
