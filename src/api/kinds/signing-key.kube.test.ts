import { expect, it } from 'vitest';
import { useNamespace } from '../../../test/support/kubernetes/namespace.ts';
import { resourceOf } from '../../kube/resource.ts';

const { client, namespace } = useNamespace('signing-key');
const SUBSCRIPTIONS = resourceOf('Subscription');
const name = { namespace, name: 'orders' };
const [older, newer] = ['AAAAAAAAAA', 'BBBBBBBBBB'];

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
