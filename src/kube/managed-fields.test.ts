import { expect, test } from 'vitest';
import { managersOfItem, ownedPart } from './managed-fields.ts';

const spec = {
  producer: 'shop',
  endpoint: { url: 'https://a.example', headers: [{ name: 'a', value: 'b' }], secretVersion: 2 },
};

const object = (managedFields: object[]) => ({ metadata: { name: 'x', managedFields }, spec });

test('returns the fields of a manager with current values', () => {
  const managed = [
    { manager: 'rest', fieldsV1: { 'f:spec': { 'f:endpoint': { 'f:secretVersion': {}, 'f:headers': {} } } } },
    { manager: 'git', fieldsV1: { 'f:spec': { '.': {}, 'f:producer': {}, 'f:endpoint': { '.': {}, 'f:url': {} } } } },
    { manager: 'rest', subresource: 'status', fieldsV1: { 'f:spec': { 'f:producer': {} } } },
  ];
  expect(ownedPart(object(managed), 'rest')).toEqual({
    endpoint: { secretVersion: 2, headers: spec.endpoint.headers },
  });
  expect(ownedPart(object(managed), 'git')).toEqual({ producer: 'shop', endpoint: { url: 'https://a.example' } });
});

test('returns nothing for managers without fields, or for removed fields', () => {
  expect(ownedPart(object([]), 'rest')).toEqual({});
  expect(ownedPart(object([{ manager: 'rest', fieldsV1: { 'f:metadata': {} } }]), 'rest')).toEqual({});
  expect(ownedPart(object([{ manager: 'rest', fieldsV1: { 'f:spec': { 'f:suspended': {} } } }]), 'rest')).toEqual({});
});

const keys = (manager: string, ids: readonly string[], more: object = {}) => ({
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
const workspace = {
  metadata: {
    managedFields: [
      keys('argocd', ['a', 'shared']),
      keys('sluice-facade/keys', ['b', 'shared']),
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
  expect(managersOfItem(workspace, 'ingressKeys', id)).toEqual(owners);
});

test('an object without managed fields has no owner', () => {
  expect(managersOfItem({ metadata: {} }, 'ingressKeys', 'a')).toEqual([]);
});
