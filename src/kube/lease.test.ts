import { expect, test } from 'vitest';
import { STORE_ANNOTATION } from '../api/well-known.ts';
import type { KubeClient } from './client.ts';
import { createLeaseStore, type LeaseMarks, leaseLabels } from './lease.ts';

const { signal } = new AbortController();

/** Returns a store for a Lease of an in-memory API server. */
function start(marks?: LeaseMarks) {
  let lease: { readonly metadata: Readonly<Record<string, unknown>> } | undefined;
  const write = async (_resource: unknown, _name: unknown, body: { readonly metadata: object }) => {
    lease = { ...body, metadata: { uid: 'lease-uid', resourceVersion: '1', ...body.metadata } };
    return lease;
  };
  const client = { get: async () => lease, create: write, update: write } as unknown as KubeClient;
  return { leases: createLeaseStore(client, { namespace: 'apps', name: 'l' }, marks), lease: () => lease };
}

test("keeps the id of the last leader's Redis until the next leader knows its own", async () => {
  let store: string | undefined;
  const { leases, lease } = start({ labels: leaseLabels('blue'), store: () => store });
  const first = await leases.create({ holderIdentity: 'a' }, signal);
  expect(lease()?.metadata).toMatchObject({ labels: { 'sluice.dev/instance': 'blue' }, annotations: {} });
  store = 'redis-1';
  const second = await leases.update(first, { holderIdentity: 'a' }, signal);
  expect([first.store, second.store]).toEqual([undefined, 'redis-1']);
  store = undefined;
  const third = await leases.update(second, { holderIdentity: 'b' }, signal);
  expect(lease()?.metadata.annotations).toEqual({ [STORE_ANNOTATION]: 'redis-1' });
  store = 'redis-2';
  expect((await leases.update(third, { holderIdentity: 'b' }, signal)).store).toBe('redis-2');
});

test('does not write labels or annotations for a process that is not a controller', async () => {
  const { leases, lease } = start();
  await leases.update({ uid: 'u', resourceVersion: '1', spec: {}, store: 'redis-1' }, {}, signal);
  expect(lease()?.metadata).toEqual({ uid: 'u', resourceVersion: '1' });
});
