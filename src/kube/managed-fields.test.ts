import { expect, test } from 'vitest';
import { isApplied, managersOfItem, ownedPart } from './managed-fields.ts';

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

const ENDPOINT = { '.': {}, 'f:url': {}, 'f:headers': {}, 'f:secretVersion': {} };
const all = { 'f:producer': {}, 'f:endpoint': ENDPOINT };
const rest = (fieldsV1: object, more: object = {}) => ({ manager: 'rest', operation: 'Apply', fieldsV1, ...more });

test.each<[string, boolean, object, object[]]>([
  ['the same fields', true, spec, [rest({ 'f:spec': all }), { manager: 'git', fieldsV1: { 'f:spec': all } }]],
  [
    'a part of a structure',
    true,
    { producer: 'shop', endpoint: { url: 'https://a.example' } },
    [rest({ 'f:spec': { 'f:producer': {}, 'f:endpoint': { 'f:url': {} } } })],
  ],
  ['a field that is left out', true, { ...spec, suspended: undefined }, [rest({ 'f:spec': all })]],
  ['another value', false, { ...spec, producer: 'other' }, [rest({ 'f:spec': all })]],
  [
    'another value in a list',
    false,
    { ...spec, endpoint: { ...spec.endpoint, headers: [] } },
    [rest({ 'f:spec': all })],
  ],
  ['an additional field', false, { ...spec, suspended: true }, [rest({ 'f:spec': all })]],
  ['fewer fields', false, { producer: 'shop' }, [rest({ 'f:spec': all })]],
  [
    'fewer fields of a structure',
    false,
    { ...spec, endpoint: { url: 'https://a.example' } },
    [rest({ 'f:spec': all })],
  ],
  [
    'a structure that is gone',
    false,
    { ...spec, other: { a: 1 } },
    [rest({ 'f:spec': { ...all, 'f:other': { 'f:a': {} } } })],
  ],
  ['a text instead of a structure', false, { ...spec, endpoint: 'x' }, [rest({ 'f:spec': all })]],
  ['the fields of another manager', false, spec, [{ ...rest({ 'f:spec': all }), manager: 'git' }]],
  ['fields that were updated', false, spec, [rest({ 'f:spec': all }, { operation: 'Update' })]],
  ['fields of the status', false, spec, [rest({ 'f:spec': all }, { subresource: 'status' })]],
  ['labels as well', false, spec, [rest({ 'f:spec': all, 'f:metadata': { 'f:labels': { 'f:a': {} } } })]],
  ['no fields', false, {}, [rest({})]],
  ['no entry', false, {}, []],
])('a manager that has applied %s would not change anything: %s', (_what, expected, wanted, managed) => {
  expect(isApplied(object(managed), 'rest', wanted)).toBe(expected);
});

test('a list whose items have managers of their own is always applied again', () => {
  const keyed = { metadata: workspace.metadata, spec: { account: 'a', ingressKeys: [{ id: 'b' }, { id: 'shared' }] } };
  expect(isApplied(keyed, 'sluice-facade/keys', keyed.spec)).toBe(false);
});
