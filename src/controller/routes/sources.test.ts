import { expect, test } from 'vitest';
import { finish } from '../../core/routing/steps.ts';
import type { AnyObject } from '../../kube/object.ts';
import { createReflected } from '../../kube/reflected.ts';
import { createLogger } from '../../telemetry/log.ts';
import { type Caches, INDEXES } from '../caches/caches.ts';
import { routeSources } from './sources.ts';

test('a list that contains another object of the same name and generation enqueues the tenant', () => {
  const log = createLogger({ level: 'silent' });
  const reflect = () => createReflected<AnyObject>({ project: object => object, log });
  const kinds = [...Object.keys(INDEXES), 'namespaces', 'ingressKeys', 'headerSecrets'];
  const caches = Object.fromEntries(kinds.map(kind => [kind, reflect()]));
  const added: string[] = [];
  for (const source of routeSources(caches as unknown as Caches)) source.subscribe(name => added.push(name));
  const packages = caches['Package'];
  const list = (uid: string, resourceVersion: string, streams: readonly string[]) => {
    const metadata = { name: 'sales', namespace: 'acme', uid, resourceVersion, generation: 1, finalizers: ['f'] };
    if (packages === undefined) return;
    finish(packages.replace([packages.project({ metadata, spec: { streams } } as AnyObject)], resourceVersion));
  };
  list('u1', '1', []);
  list('u1', '2', []);
  expect(added).toEqual(['acme']);
  list('u2', '3', ['orders']);
  expect(added).toEqual(['acme', 'acme']);
});
