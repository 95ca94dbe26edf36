import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { temporaryFolder } from '../temporary-folder.ts';
import { type StartedCluster, startCluster } from './cluster.ts';
import { applyDefinitions } from './crds.ts';

let cluster: StartedCluster;

beforeAll(async () => {
  cluster = await startCluster({ controllerManager: true, users: [{ name: 'reader', groups: ['readers'] }] });
});

afterAll(() => cluster.stop());

function namespace(name: string): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}

function coreApi(kubeconfig: string): CoreV1Api {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  return config.makeApiClient(CoreV1Api);
}

test('the data and the port survive SIGKILL of the API server', async () => {
  const applied = await cluster.kubectl(['apply', '-f', '-'], { stdin: namespace('kept') });
  expect(applied).toEqual({ stdout: 'namespace/kept created\n', stderr: '', code: 0 });

  await cluster.killApiServer('SIGKILL');
  expect((await cluster.kubectl(['get', 'namespaces'])).code).not.toBe(0);
  await cluster.startApiServer();

  const found = await cluster.kubectl(['get', 'namespace', 'kept', '-o', 'name']);
  expect(found).toEqual({ stdout: 'namespace/kept\n', stderr: '', code: 0 });
});

test('the Kubernetes client accepts the kubeconfig and the certificate', async () => {
  const { items } = await coreApi(cluster.kubeconfig).listNamespace();
  expect(items.map(({ metadata }) => metadata?.name)).toContain('default');
});

test('a user only has the permissions of its groups', async () => {
  const reader = await cluster.userKubeconfig('reader', ['readers']);
  const getAs = (path: string) => cluster.kubectl(['--kubeconfig', path, 'get', 'configmaps', '-n', 'default']);
  expect((await getAs(reader)).stderr).toContain('User "reader" cannot list resource "configmaps"');

  const bind = ['create', 'clusterrolebinding', 'readers', '--clusterrole=view', '--group=readers'];
  expect((await cluster.kubectl(bind)).code).toBe(0);

  // The authorizer receives the binding using a watch.
  await vi.waitFor(async () => expect((await getAs(reader)).code).toBe(0), { timeout: 30_000, interval: 100 });
  const stranger = await cluster.userKubeconfig('stranger');
  expect((await getAs(stranger)).stderr).toContain('User "stranger" cannot list');
});

test('a deleted namespace is removed completely', async () => {
  await cluster.kubectl(['apply', '-f', '-'], { stdin: namespace('passing') });
  expect(await cluster.kubectl(['delete', 'namespace', 'passing', '--timeout=50s'])).toMatchObject({ code: 0 });
});

const WIDGETS = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.support.test }
spec:
  group: support.test
  scope: Namespaced
  names: { kind: Widget, plural: widgets }
  versions:
    - { name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }
---
# Not a definition, so not applied.
apiVersion: v1
kind: Namespace
metadata: { name: beside-widgets }
`;

test('definitions are applied, served immediately, and can be applied again', async () => {
  const folder = await temporaryFolder('crds-test');
  onTestFinished(folder.remove);
  await writeFile(join(folder.path, 'widgets.yaml'), WIDGETS);
  expect(await applyDefinitions(cluster.kubeconfig, folder.path)).toBe(1);
  expect(await applyDefinitions(cluster.kubeconfig, folder.path)).toBe(1);
  expect(await cluster.kubectl(['get', 'widgets', '-n', 'default', '-o', 'name'])).toMatchObject({
    stdout: '',
    code: 0,
  });
  expect(await cluster.kubectl(['get', 'namespace', 'beside-widgets'])).toMatchObject({ code: 1 });
});

test('the test run has a cluster', async () => {
  const { items } = await coreApi(inject('kubeconfig')).listNamespace();
  expect(items.length).toBeGreaterThan(0);
});
