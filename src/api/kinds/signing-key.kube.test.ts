import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { connect, type KubeClient } from '../../kube/client.ts';
import { NAMESPACES, resourceOf } from '../../kube/resource.ts';
import { KINDS } from './kinds.ts';

const namespace = `signing-key-${process.pid}`;
const SUBSCRIPTIONS = resourceOf(KINDS.Subscription);
const name = { namespace, name: 'orders' };
const [older, newer] = ['AAAAAAAAAA', 'BBBBBBBBBB'];

let client: KubeClient;

beforeAll(async () => {
  client = connect({ kubeconfig: inject('kubeconfig') });
  await client.create(NAMESPACES, { name: namespace }, {});
});

afterAll(async () => {
  await client.remove(NAMESPACES, { name: namespace });
  await client.close();
});

it('the id of a root key can be added to a secret, and afterwards only changes along with its version', async () => {
  const spec = { producer: 'shop', integration: 'ada', stream: 'orders' };
  await client.apply(SUBSCRIPTIONS, name, { spec }, { fieldManager: 'test' });
  const sign = (signing: object) => {
    const status = { signing: { salt: 'A'.repeat(22), ...signing } };
    return client.apply(SUBSCRIPTIONS, name, { status }, { fieldManager: 'controller', subresource: 'status' });
  };
  await sign({ version: 2 });
  await sign({ version: 2, key: older });
  await sign({ version: 2, key: older, previousKey: older });
  for (const changed of [{ key: newer, previousKey: older }, { key: older, previousKey: newer }, { key: older }, {}]) {
    await expect(sign({ version: 2, ...changed })).rejects.toMatchObject({ status: 422 });
  }
  await sign({ version: 3, key: newer, previousKey: older });
});
