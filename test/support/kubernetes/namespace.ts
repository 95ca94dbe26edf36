import { afterAll, beforeAll, inject } from 'vitest';
import { connect, type KubeClient } from '../../../src/kube/client.ts';
import { NAMESPACES } from '../../../src/kube/resource.ts';

/** Creates a namespace before the tests of a file and deletes it after them. Returns its name and a client. */
export function useNamespace(purpose: string): { readonly client: KubeClient; readonly namespace: string } {
  const namespace = `${purpose}-${process.pid}`;
  const client = connect({ kubeconfig: inject('kubeconfig') });
  beforeAll(async () => {
    await client.create(NAMESPACES, { name: namespace }, {});
  });
  afterAll(async () => {
    await client.remove(NAMESPACES, { name: namespace });
    await client.close();
  });
  return { client, namespace };
}
