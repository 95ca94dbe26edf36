import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Cluster, startCluster } from '../../test/support/kubernetes/cluster.ts';
import { createLogger } from '../telemetry/log.ts';
import { systemClock } from '../time/clock.ts';
import { connect, type KubeClient } from './client.ts';
import type { AnyObject } from './object.ts';
import { createReflector, type Reflector } from './reflector.ts';
import type { Resource } from './resource.ts';

const CONFIG_MAPS: Resource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
type ConfigMap = AnyObject & { readonly data?: Record<string, string> };

let cluster: Cluster;
let client: KubeClient;
let reflector: Reflector<string>;
let running: Promise<void>;
const stop = new AbortController();
const changes: string[] = [];
const namespace = 'default';

async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error('the condition was not true within 30 s');
    await delay(20);
  }
}

const put = (name: string, value: string) =>
  client.apply(CONFIG_MAPS, { namespace, name }, { data: { value } }, { fieldManager: 'test' });

beforeAll(async () => {
  cluster = await startCluster();
  client = connect({ kubeconfig: cluster.kubeconfig });
  await put('before', '1');
  reflector = createReflector<ConfigMap, string>({
    client,
    resource: CONFIG_MAPS,
    namespace,
    project: object => object.data?.value,
    indexers: { byValue: value => [value] },
    onChange: (change, key) => {
      changes.push(`${change} ${key}`);
      throw new Error('a handler that throws');
    },
    clock: systemClock,
    log: createLogger({ level: 'silent' }),
  });
  running = reflector.run(stop.signal);
});

afterAll(async () => {
  stop.abort();
  await running;
  await client.close();
  await cluster.stop();
});

describe('reflector', () => {
  it('receives all objects, even if its handler throws', async () => {
    await reflector.synced;
    expect(reflector.store.get('default/before')).toBe('1');
    await put('live', '1');
    await until(() => reflector.store.get('default/live') === '1');
    await put('live', '2');
    await until(() => reflector.store.get('default/live') === '2');
    expect(reflector.store.byIndex('byValue', '2')).toEqual(['2']);
    await client.remove(CONFIG_MAPS, { namespace, name: 'live' });
    await until(() => reflector.store.get('default/live') === undefined);
    expect(changes.filter(change => change.endsWith('live'))).toEqual([
      'added default/live',
      'updated default/live',
      'deleted default/live',
    ]);
  });

  it('receives all changes after the API server was killed and restarted repeatedly', async () => {
    for (const round of ['1', '2', '3']) {
      await cluster.killApiServer();
      await cluster.startApiServer();
      await put('survivor', round);
      await until(() => reflector.store.get('default/survivor') === round);
    }
  });

  it('catches up after a disconnect', async () => {
    await put('doomed', '1');
    await until(() => reflector.store.get('default/doomed') === '1');
    await cluster.killApiServer();
    // Longer than one pause of the backoff, so several attempts fail.
    await delay(3_000);
    await cluster.startApiServer();
    const other = connect({ kubeconfig: cluster.kubeconfig });
    await other.remove(CONFIG_MAPS, { namespace, name: 'doomed' });
    await other.close();
    await until(() => reflector.store.get('default/doomed') === undefined);
  });

  it('lists again if requested', async () => {
    await put('fresh', '7');
    await reflector.relist();
    expect(reflector.store.get('default/fresh')).toBe('7');
  });

  it('receives a message from the API server regularly', () => {
    expect(systemClock.nowMs() - (reflector.lastHeardMs() ?? 0)).toBeLessThan(60_000);
  });
});
