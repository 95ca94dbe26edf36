import { expect, test } from 'vitest';
import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/kube-error.ts';
import { createLiveLists } from './live-lists.ts';

/** A client whose lists complete when the test requests this. */
function start() {
  const calls: PromiseWithResolvers<{ items: object[] }>[] = [];
  const asked: (string | undefined)[] = [];
  const list = (_resource: object, _project: unknown, options: { fieldSelector?: string; limit?: number }) => {
    asked.push(options.fieldSelector && `${options.fieldSelector} limit=${options.limit}`);
    const call = Promise.withResolvers<{ items: object[] }>();
    calls.push(call);
    return call.promise;
  };
  const client = { list } as unknown as Pick<KubeClient, 'list'>;
  return { calls, asked, listLive: createLiveLists({ client, keep: object => object }) };
}

const turn = () => new Promise(resolve => setImmediate(resolve));

test('a request during a list uses a shared list that was started later', async () => {
  const { calls, listLive } = start();
  const first = listLive('Block', 'shop');
  const second = listLive('Block', 'shop');
  const third = listLive('Block', 'shop');
  await turn();
  expect(calls).toHaveLength(1);
  calls[0]?.resolve({ items: [{ old: true }] });
  expect(await first).toEqual([{ old: true }]);
  await turn();
  expect(calls).toHaveLength(2);
  const fourth = listLive('Block', 'shop');
  calls[1]?.resolve({ items: [] });
  expect(await Promise.all([second, third])).toEqual([[], []]);
  await turn();
  calls[2]?.resolve({ items: [{ new: true }] });
  expect(await fourth).toEqual([{ new: true }]);
  expect(calls).toHaveLength(3);
  void listLive('Block', 'shop');
  expect(calls).toHaveLength(4);
});

test('other kinds and namespaces do not wait, and a failure only affects its own requests', async () => {
  const { calls, listLive } = start();
  const failing = listLive('Block', 'shop');
  const other = listLive('Package', 'shop');
  const after = listLive('Block', 'shop');
  expect(calls).toHaveLength(2);
  calls[0]?.reject(new Error('unavailable'));
  await expect(failing).rejects.toMatchObject({ code: 'unavailable' });
  calls[1]?.resolve({ items: [] });
  expect(await other).toEqual([]);
  await turn();
  calls[2]?.resolve({ items: [] });
  expect(await after).toEqual([]);
});

test('the API server selects objects by their fields, or lists all if it does not know these fields yet', async () => {
  const { calls, asked, listLive } = start();
  const selected = listLive('Block', 'shop', { 'spec.integration': 'ada', 'spec.target.kind': 'Package' });
  expect(asked).toEqual(['spec.integration=ada,spec.target.kind=Package limit=0']);
  calls[0]?.reject(new KubeError({ call: 'LIST', status: 400, reason: 'BadRequest' }));
  await turn();
  expect(asked).toEqual([asked[0], undefined]);
  calls[1]?.resolve({ items: [{ all: true }] });
  expect(await selected).toEqual([{ all: true }]);
});
