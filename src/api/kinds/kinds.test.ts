import { expect, expectTypeOf, it } from 'vitest';
import type { CatalogStream } from './catalog-stream.ts';
import { KINDS, type ObjectOf } from './kinds.ts';

const kinds = Object.values(KINDS);

it('lists each kind once under its own name', () => {
  for (const [name, { kind }] of Object.entries(KINDS)) expect(kind).toBe(name);
  const names = kinds.flatMap(({ plural, singular, shortNames }) => [plural, singular, ...shortNames]);
  expect(new Set(names).size).toBe(names.length);
});

it('excludes cluster-scoped kinds from the category for users of one namespace', () => {
  const cluster = kinds.filter(({ categories }) => categories.includes('waas-admin')).map(({ kind }) => kind);
  expect(cluster).toEqual(['Account', 'Workspace']);
  expect(kinds.filter(({ categories }) => categories.includes('waas'))).toHaveLength(kinds.length - cluster.length);
});

it('adds defaults and removes unknown fields, like the API server', () => {
  const stored: unknown = {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'CatalogStream',
    metadata: {
      name: 'orders',
      namespace: 'acme',
      uid: 'u',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      managedFields: [],
    },
    spec: { public: true, unknown: 1 },
  };
  const stream = KINDS.CatalogStream.schema.parse(stored);
  expect(stream.spec).toEqual({ public: true, retention: '168h', deletionPolicy: 'Retain' });
  expect(stream.metadata).not.toHaveProperty('managedFields');
  expectTypeOf(stream).toEqualTypeOf<CatalogStream>();
  expectTypeOf(stream.metadata.namespace).toEqualTypeOf<string>();
  expectTypeOf<ObjectOf<'Account'>['metadata']>().not.toHaveProperty('namespace');
});
