import { expect, test } from 'vitest';
import { finish } from '../../core/routing/steps.ts';
import type { AnyObject } from '../../kube/object.ts';
import { createReflected } from '../../kube/reflected.ts';
import { createLogger } from '../../telemetry/log.ts';
import { type Caches, INDEXES } from '../caches/caches.ts';
import { routeSources } from './sources.ts';

/** Lists the only object of a kind. Returns the tenants that have been enqueued so far. */
function follow(kind: 'Package' | 'Subscription') {
  const log = createLogger({ level: 'silent' });
  const reflect = () => createReflected<AnyObject>({ project: object => object, log });
  const kinds = [...Object.keys(INDEXES), 'namespaces', 'ingressKeys', 'headerSecrets'];
  const caches = Object.fromEntries(kinds.map(each => [each, reflect()]));
  const added: string[] = [];
  for (const source of routeSources(caches as unknown as Caches)) source.subscribe(name => added.push(name));
  const objects = caches[kind];
  return (uid: string, resourceVersion: string, spec: object): string[] => {
    const metadata = { name: 'sales', namespace: 'acme', uid, resourceVersion, generation: 1, finalizers: ['f'] };
    if (objects === undefined) return added;
    finish(objects.replace([objects.project({ metadata, spec } as AnyObject)], resourceVersion));
    return added;
  };
}

test('a list that contains another object of the same name and generation enqueues the tenant', () => {
  const list = follow('Package');
  list('u1', '1', { streams: [] });
  expect(list('u1', '2', { streams: [] })).toEqual(['acme']);
  expect(list('u2', '3', { streams: ['orders'] })).toEqual(['acme', 'acme']);
});

test('a list that contains a Subscription of the same name to another producer enqueues both producers', () => {
  const list = follow('Subscription');
  expect(list('u1', '1', { producer: 'before' })).toEqual(['before']);
  expect(list('u2', '2', { producer: 'after' })).toEqual(['before', 'before', 'after']);
});
