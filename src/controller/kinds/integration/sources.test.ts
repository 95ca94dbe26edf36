import { expect, test } from 'vitest';
import { finish } from '../../../core/routing/steps.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { createReflected } from '../../../kube/reflected.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { type Caches, INDEXES } from '../../caches/caches.ts';
import { integrationSources } from './sources.ts';

test('a Subscription that was replaced by one to another integration enqueues both integrations', () => {
  const reflect = () =>
    createReflected<AnyObject>({ project: object => object, log: createLogger({ level: 'silent' }) });
  const caches = Object.fromEntries([...Object.keys(INDEXES), 'namespaces'].map(kind => [kind, reflect()]));
  const added: string[] = [];
  for (const source of integrationSources(caches as unknown as Caches)) source.subscribe(key => added.push(key));
  const list = (kind: 'Integration' | 'Subscription', version: string, names: readonly (readonly [string, string])[]) =>
    finish(
      (caches[kind] as ReturnType<typeof reflect>).replace(
        names.map(([namespace, name]) => {
          const spec = { producer: 'acme', integration: `globex-${version}`, workspace: 'globex' };
          const metadata = { namespace, name, uid: version, resourceVersion: version, generation: 1 };
          return (caches[kind] as ReturnType<typeof reflect>).project({ metadata, spec } as AnyObject);
        }),
        version,
      ),
    );
  list('Integration', '1', [
    ['acme', 'globex-1'],
    ['acme', 'globex-2'],
  ]);
  list('Subscription', '1', [['globex', 'orders']]);
  expect(added).toEqual(['acme/globex-1']);
  list('Subscription', '2', [['globex', 'orders']]);
  expect(added).toEqual(['acme/globex-1', 'acme/globex-1', 'acme/globex-2']);
});
