import { expect, test } from 'vitest';
import type { KubeObject } from './object.ts';
import { createPartSharing } from './shared-parts.ts';

type Thing = KubeObject<{ readonly of: string; readonly key: string }, { readonly conditions: readonly object[] }>;

const thing = (name: string, status = 'True'): Thing =>
  JSON.parse(
    JSON.stringify({
      metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: '1', finalizers: ['f'] },
      spec: { of: 'one', key: name },
      status: { conditions: [{ type: 'Ready', status }] },
    }),
  ) as Thing;

test('objects remain equal, and equal parts are stored once', () => {
  const share = createPartSharing<Thing>(['of', 'absent']);
  const [a, b, c] = [thing('a'), thing('b'), thing('c', 'False')].map(share) as [Thing, Thing, Thing];
  expect([a, b, c]).toEqual([thing('a'), thing('b'), thing('c', 'False')]);
  expect(b.status?.conditions).toBe(a.status?.conditions);
  expect(c.status?.conditions).not.toBe(a.status?.conditions);
  expect(b.metadata.finalizers).toBe(a.metadata.finalizers);
});

test('it is not an error if there are more parts than can be stored', () => {
  const share = createPartSharing<Thing>(['key']);
  for (let i = 0; i < 50_000; i++) expect(share(thing(`n${i % 30_000}`)).spec.key).toBe(`n${i % 30_000}`);
});
