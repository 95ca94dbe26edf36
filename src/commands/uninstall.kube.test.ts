import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { parse } from 'yaml';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { FINALIZER, INSTANCE_LABEL } from '../api/well-known.ts';
import { connect, type KubeClient } from '../kube/client.ts';
import { leaseLabels } from '../kube/lease.ts';
import type { AnyObject } from '../kube/object.ts';
import { LEASES, NAMESPACES, resourceOf } from '../kube/resource.ts';
import { uninstall } from './uninstall.ts';

const NAME = `held-${process.pid}`;
const STREAMS = resourceOf('CatalogStream');
const stream = { namespace: NAME, name: 'orders' };
let client: KubeClient;

beforeAll(() => {
  client = connect({ kubeconfig: inject('kubeconfig') });
});

afterAll(async () => {
  await client.mergePatch(STREAMS, stream, { metadata: { finalizers: null } });
  await client.remove(NAMESPACES, { name: NAME });
  await client.close();
});

test('a namespace without the label of a workspace belongs to the installation without a name, as for its controller', async () => {
  await client.create(NAMESPACES, { name: NAME }, { metadata: { labels: { [INSTANCE_LABEL]: NAME } } });
  await client.create(STREAMS, stream, { metadata: { finalizers: [FINALIZER] }, spec: {} });
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const env = { KUBECONFIG: inject('kubeconfig'), SLUICE_INSTANCE: NAME, SLUICE_NAMESPACE: NAME };
  expect(await uninstall([], env)).toBe(0);
  expect(write.mock.calls.join('')).toContain('There is nothing to do.');
  write.mockRestore();
  expect((await client.get<AnyObject>(STREAMS, stream))?.metadata.finalizers).toEqual([FINALIZER]);
});

test("another installation's Lease is not taken over", async () => {
  const name = { namespace: NAME, name: 'sluice-controller' };
  await client.remove(LEASES, name);
  const spec = { holderIdentity: 'its-leader', leaseDurationSeconds: 15 };
  await client.create(LEASES, name, { metadata: { labels: leaseLabels('blue') }, spec });
  onTestFinished(async () => void (await client.remove(LEASES, name)));
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const env = { KUBECONFIG: inject('kubeconfig'), SLUICE_NAMESPACE: NAME };
  expect(await uninstall([], { ...env, SLUICE_INSTANCE: 'blu' })).toBe(0);
  const printed = write.mock.calls.join('');
  write.mockRestore();
  expect(await client.get(LEASES, name)).toMatchObject({ spec: { holderIdentity: 'its-leader' } });
  expect(printed).toContain(
    `The Lease sluice-controller in namespace ${NAME} was not changed because it belongs to the installation blue.`,
  );
  // The stream of the first test belongs to the installation without a name.
  await expect(uninstall(['--ignore-undelivered'], env)).rejects.toThrow('belongs to the installation blue');
  expect(await client.get(LEASES, name)).toMatchObject({ spec: { holderIdentity: 'its-leader' } });
  expect((await client.get<AnyObject>(STREAMS, stream))?.metadata.finalizers).toEqual([FINALIZER]);
});

test('nothing is changed if no controller has led in the namespace of the kubeconfig', async () => {
  const folder = await temporaryFolder('uninstall');
  onTestFinished(() => folder.remove());
  const kubeconfig = join(folder.path, 'config');
  const config = parse(await readFile(inject('kubeconfig'), 'utf8')) as { contexts: { context: object }[] };
  config.contexts = config.contexts.map(each => ({ ...each, context: { ...each.context, namespace: 'nowhere' } }));
  await writeFile(kubeconfig, JSON.stringify(config));
  await expect(uninstall(['--ignore-undelivered'], { KUBECONFIG: kubeconfig })).rejects.toThrow(
    'SLUICE_NAMESPACE: not set, and namespace nowhere has no Lease sluice-controller. Set SLUICE_NAMESPACE to the namespace of the controller',
  );
  expect((await client.get<AnyObject>(STREAMS, stream))?.metadata.finalizers).toEqual([FINALIZER]);
});
