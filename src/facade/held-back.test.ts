import { expect, test } from 'vitest';
import { heldBack } from './held-back.ts';

const CONCERN = ['name', 'description', 'public'];

function stream(spec: object, ...managers: [manager: string, fields: readonly string[], subresource?: string][]) {
  const managedFields = managers.map(([manager, fields, subresource]) => ({
    manager,
    ...(subresource === undefined ? {} : { subresource }),
    fieldsV1: { 'f:spec': Object.fromEntries(fields.map(field => [`f:${field}`, {}])) },
  }));
  return { metadata: { managedFields }, spec };
}

test('a field that is wanted absent and that somebody else owns is told, with its manager', () => {
  const object = stream({ description: 'from Git' }, ['argocd', ['description']], ['sluice-facade', ['name']]);
  expect(heldBack(object, {}, CONCERN, 'sluice-facade')).toEqual([
    { pointer: '/spec/description', detail: 'spec.description is managed by argocd' },
  ]);
});

test('a field of our own, one that is as wanted, and one of another concern are not held back', () => {
  expect(
    heldBack(stream({ description: 'old' }, ['sluice-facade', ['description']]), {}, CONCERN, 'sluice-facade'),
  ).toEqual([]);
  const shared = stream({ description: 'same' }, ['argocd', ['description']]);
  expect(heldBack(shared, { description: 'same' }, CONCERN, 'sluice-facade')).toEqual([]);
  const other = stream({ retention: '24h' }, ['argocd', ['retention']]);
  expect(heldBack(other, {}, CONCERN, 'sluice-facade')).toEqual([]);
});

test('a default that nobody owns, and what only a status writer owns, are not held back', () => {
  expect(heldBack(stream({ public: false }), {}, CONCERN, 'sluice-facade')).toEqual([]);
  const status = stream({ public: false }, ['sluice-controller', ['public'], 'status']);
  expect(heldBack(status, {}, CONCERN, 'sluice-facade')).toEqual([]);
});
