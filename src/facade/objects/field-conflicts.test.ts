import { expect, test } from 'vitest';
import {
  assertNotManagedElsewhere,
  conflictingFields,
  conflictingFieldsWithin,
  otherManagers,
} from './field-conflicts.ts';

const CONCERN = ['name', 'description', 'public'];

function stream(spec: object, ...managers: [manager: string, fields: readonly string[], subresource?: string][]) {
  const managedFields = managers.map(([manager, fields, subresource]) => ({
    manager,
    ...(subresource === undefined ? {} : { subresource }),
    fieldsV1: { 'f:spec': Object.fromEntries(fields.map(field => [`f:${field}`, {}])) },
  }));
  return { metadata: { managedFields }, spec };
}

test('a field that must be absent and has another owner is reported with its manager', () => {
  const object = stream({ description: 'from Git' }, ['argocd', ['description']], ['sluice-facade', ['name']]);
  expect(conflictingFields(object, {}, CONCERN, 'sluice-facade')).toEqual([
    { pointer: '/spec/description', detail: 'spec.description is managed by argocd' },
  ]);
});

test('ignores own fields, equal values, and fields of another concern', () => {
  expect(
    conflictingFields(stream({ description: 'old' }, ['sluice-facade', ['description']]), {}, CONCERN, 'sluice-facade'),
  ).toEqual([]);
  const shared = stream({ description: 'same' }, ['argocd', ['description']]);
  expect(conflictingFields(shared, { description: 'same' }, CONCERN, 'sluice-facade')).toEqual([]);
  const other = stream({ retention: '24h' }, ['argocd', ['retention']]);
  expect(conflictingFields(other, {}, CONCERN, 'sluice-facade')).toEqual([]);
});

test('a default without an owner, and a field that only a status writer owns, are not conflicts', () => {
  expect(conflictingFields(stream({ public: false }), {}, CONCERN, 'sluice-facade')).toEqual([]);
  const status = stream({ public: false }, ['sluice-controller', ['public'], 'status']);
  expect(conflictingFields(status, {}, CONCERN, 'sluice-facade')).toEqual([]);
});

function subscription(endpoint: object, manager: string, parts: readonly string[]) {
  const fields = Object.fromEntries([['.', {}], ...parts.map(part => [`f:${part}`, {}])]);
  const managedFields = [{ manager, fieldsV1: { 'f:spec': { 'f:endpoint': fields } } }];
  return { metadata: { managedFields }, spec: { endpoint } };
}

test('a part of a structure that must be absent and has another owner is reported before any write', () => {
  const object = subscription({ url: 'u', maxPerSecond: 8 }, 'argocd', ['url', 'maxPerSecond']);
  const conflicts = [{ pointer: '/spec/endpoint', detail: 'spec.endpoint is managed by argocd' }];
  expect(conflictingFieldsWithin(object, { endpoint: { url: 'u' } }, ['endpoint'], 'sluice-facade')).toEqual(conflicts);
  expect(
    conflictingFieldsWithin(object, { endpoint: { url: 'u', maxPerSecond: 9 } }, ['endpoint'], 'sluice-facade'),
  ).toEqual([]);
  expect(conflictingFieldsWithin(object, { endpoint: { url: 'u' } }, ['endpoint'], 'argocd')).toEqual([]);
  expect(conflictingFieldsWithin(object, { endpoint: { url: 'u' } }, [], 'sluice-facade')).toEqual([]);
  expect(conflictingFieldsWithin(object, {}, ['endpoint'], 'sluice-facade')).toEqual([]);
});

test('returns the other managers of a field, except for managers of the status', () => {
  const object = stream({}, ['argocd', ['name']], ['sluice-facade', ['name']], ['flux', ['name'], 'status']);
  expect(otherManagers(object, 'sluice-facade', 'name')).toEqual(['argocd']);
});

test('an object is managed elsewhere if another manager owns its identity, and not just another field', () => {
  const of = (...managers: [manager: string, fields: readonly string[]][]) => {
    const { metadata } = stream({}, ['sluice-facade', ['stream']], ...managers);
    return { metadata: { ...metadata, name: 'acme-orders', namespace: 'globex' } };
  };
  const check = (object: ReturnType<typeof of>) =>
    assertNotManagedElsewhere('Subscription', object, 'sluice-facade', 'stream');
  expect(() => check(of(['kubectl-edit', ['suspended']]))).not.toThrow();
  expect(() => check(of(['argocd-controller', ['stream']]))).toThrow(
    'Subscription acme-orders in the namespace globex is managed by argocd-controller.',
  );
});
