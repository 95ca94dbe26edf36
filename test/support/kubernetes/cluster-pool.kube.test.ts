import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { borrowCluster } from './borrowed-cluster.ts';
import type { Cluster } from './cluster.ts';
import { type ClusterPool, openClusterPool } from './cluster-pool.ts';
import { applyDefinitions } from './crds.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const CRDS = join(import.meta.dirname, '..', '..', '..', 'crds');

let pool: ClusterPool;
beforeAll(async () => {
  pool = await openClusterPool(async ({ kubeconfig }) => {
    await applyDefinitions(kubeconfig, CRDS);
  });
});
afterAll(() => pool.stop());

async function kubectl(cluster: Cluster, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

const everything = (cluster: Cluster) =>
  kubectl(cluster, 'get', 'ns,crd,clusterroles,secrets,configmaps,flowschemas', '-A', '-o', 'name');

test('a returned cluster contains its initial objects', async () => {
  const first = await borrowCluster(pool.url);
  const before = await everything(first);
  await kubectl(first, 'create', 'namespace', 'shop');
  await kubectl(first, 'create', 'configmap', 'held', '-n', 'shop');
  await kubectl(first, 'patch', 'configmap', 'held', '-n', 'shop', '-p', '{"metadata":{"finalizers":["a.b/c"]}}');
  await kubectl(first, 'delete', 'namespace', 'shop', '--wait=false');
  await kubectl(first, 'delete', 'clusterrole', 'view');
  await kubectl(first, 'delete', 'crd', 'blocks.sluice.dev');
  await kubectl(first, 'label', 'namespace', 'default', 'changed=yes');
  const flow = { apiVersion: 'flowcontrol.apiserver.k8s.io/v1', kind: 'FlowSchema', metadata: { name: 'own' } };
  const spec = { priorityLevelConfiguration: { name: 'exempt' } };
  const created = await first.kubectl(['create', '-f', '-'], { stdin: JSON.stringify({ ...flow, spec }) });
  expect(created.stderr).toBe('');
  await first.stop();

  const second = await borrowCluster(pool.url);
  expect(second.url).toBe(first.url);
  expect(await everything(second)).toBe(before);
  expect(await kubectl(second, 'get', 'namespace', 'default', '-o', 'jsonpath={.metadata.labels.changed}')).toBe('');
  // The kinds of the cluster can be used because the API server serves them again.
  await expect.poll(() => second.kubectl(['get', 'blocks.sluice.dev', '-A']).then(({ code }) => code), SOON).toBe(0);
  await kubectl(second, 'create', 'namespace', 'shop');
  await second.stop();
});

test('restarts a cluster whose API server was killed', async () => {
  const first = await borrowCluster(pool.url);
  await first.killApiServer();
  await first.stop();
  const second = await borrowCluster(pool.url);
  expect(await kubectl(second, 'get', '--raw', '/readyz')).toBe('ok');
  await second.stop();
});

test('gives each borrower a separate cluster, which is removed after it was returned', async () => {
  const [first, second] = await Promise.all([borrowCluster(pool.url), borrowCluster(pool.url)]);
  expect(first.url).not.toBe(second.url);
  await Promise.all([first.stop(), second.stop()]);
  await expect(first.startApiServer()).rejects.toThrow('has ended');
});
