import { expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import type { Context } from '../../context/context.ts';
import { reconcileStream } from './reconcile.ts';

const STREAMS = 100;
const WAITING = {
  type: 'Ready',
  status: 'Unknown',
  reason: 'WaitingForWorkspace',
  message: 'm',
  observedGeneration: 1,
};

/** Reconciles streams that waited for their workspace, and returns the number of requested compilations. */
async function reconcileAll(conditions: readonly object[], compiled: 'open' | 'closing') {
  const workspace = objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined });
  const { context } = createTestContext({ Workspace: [workspace] });
  const syncs: string[] = [];
  let state = compiled;
  const tenants = {
    sync: async (name: string) => {
      syncs.push(name);
      state = 'open';
    },
    inForce: async (_name: string, stream: { readonly metadata: { readonly name: string } }) => ({
      routes: { queues: { [stream.metadata.name]: { state } } },
    }),
  };
  const reconcile = reconcileStream({ ...context, tenants } as unknown as Context);
  for (let i = 0; i < STREAMS; i++) {
    const spec = { retention: '1h', deletionPolicy: 'Retain' } as const;
    const { conditions: has } = await reconcile(objectOf<'CatalogStream'>(`s-${i}`, spec, { status: { conditions } }));
    expect(has.find(({ type }) => type === 'Ready')?.reason).toBe('QueueReady');
  }
  return syncs.length;
}

test.each([
  ['were compiled without the workspace', 'closing', 1],
  ['already contain the workspace', 'open', 0],
] as const)('streams that waited for a workspace only request a compilation if the routes %s', async (_what, is, n) => {
  expect(await reconcileAll([WAITING], is)).toBe(n);
});

test('other streams never request a compilation', async () => {
  expect(await reconcileAll([{ ...WAITING, status: 'True', reason: 'QueueReady' }], 'closing')).toBe(0);
});

test('a stream whose retention cannot be parsed is not ready, and the message contains the retention', async () => {
  const { context } = createTestContext({});
  const stream = objectOf<'CatalogStream'>('s', { retention: '1d', deletionPolicy: 'Retain' });
  await expect(reconcileStream(context)(stream)).rejects.toThrow('spec.retention is not a valid duration: 1d.');
});
