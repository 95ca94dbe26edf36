import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { KINDS } from '../api/kinds/kinds.ts';
import { FINALIZER, INSTANCE_LABEL } from '../api/well-known.ts';
import { connect, type KubeClient } from '../kube/client.ts';
import type { AnyObject } from '../kube/object.ts';
import { NAMESPACES, resourceOf } from '../kube/resource.ts';
import { uninstall } from './uninstall.ts';

const NAME = `held-${process.pid}`;
const STREAMS = resourceOf(KINDS.CatalogStream);
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

test('a namespace without the label of a workspace is left to the installation without a name, like its controller does', async () => {
  await client.create(NAMESPACES, { name: NAME }, { metadata: { labels: { [INSTANCE_LABEL]: NAME } } });
  await client.create(STREAMS, stream, { metadata: { finalizers: [FINALIZER] }, spec: {} });
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const env = { KUBECONFIG: inject('kubeconfig'), SLUICE_INSTANCE: NAME, SLUICE_NAMESPACE: NAME };
  expect(await uninstall([], env)).toBe(0);
  expect(write.mock.calls.join('')).toContain('There is nothing to do.');
  write.mockRestore();
  expect((await client.get<AnyObject>(STREAMS, stream))?.metadata.finalizers).toEqual([FINALIZER]);
});
