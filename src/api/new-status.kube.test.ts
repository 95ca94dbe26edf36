import { expect, it } from 'vitest';
import { useNamespace } from '../../test/support/kubernetes/namespace.ts';
import { resourceOf } from '../kube/resource.ts';
import { NEW_STATUS } from './conditions.ts';

const { client, namespace } = useNamespace('new-status');
const PACKAGES = resourceOf('Package');
const name = { namespace, name: 'tools' };

interface Stored {
  readonly metadata: { readonly generation: number; readonly managedFields: readonly { readonly manager: string }[] };
  readonly status?: object;
}

it('a new object has a status, which the controller can replace', async () => {
  const applied = await client.apply(PACKAGES, name, { spec: { streams: ['a'] } }, { fieldManager: 'test' });
  const stored = await client.get<Stored>(PACKAGES, name);
  expect([applied, stored]).toMatchObject([{ status: NEW_STATUS }, { status: NEW_STATUS }]);
  expect(JSON.stringify(stored?.metadata.managedFields)).toContain('f:spec');
  expect(JSON.stringify(stored?.metadata.managedFields)).not.toContain('f:status');

  const status = { observedGeneration: stored?.metadata.generation, streamCount: 1 };
  await client.apply(PACKAGES, name, { status }, { fieldManager: 'controller', subresource: 'status' });
  await client.apply(PACKAGES, name, { spec: { streams: ['a', 'b'] } }, { fieldManager: 'test' });
  expect(await client.get<Stored>(PACKAGES, name)).toMatchObject({ metadata: { generation: 2 }, status });
});
