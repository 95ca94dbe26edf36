import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ObjectOf } from '../../../src/api/kinds/kinds.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import { activationObjectName, blockObjectName } from '../../../src/core/ids/object-names.ts';
import { connect, type KubeClient } from '../../../src/kube/client.ts';
import { resourceOf } from '../../../src/kube/resource.ts';
import type { Sluice } from '../../support/sluice.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from '../rest/support/facade-world.ts';
import { eventually } from '../support/deadline.ts';
import { type Observer, observe } from '../support/observer.ts';
import type { Problem, RestClient } from '../support/rest-client.ts';
import { untilAllAnswered, untilAnswered } from '../support/until-answered.ts';
import { activation, apply, integration, stream, waitForAll } from '../support/world.ts';

/** Concurrent calls on the same replica, on different replicas, and without a controller. */

let world: FacadeWorld;
let observer: Observer;
let client: KubeClient;
let controller: Sluice;
let one: RestClient;
let other: RestClient;
let shop: string;

const INTEGRATION = publicId('Integration', 'shop', 'partner');

beforeAll(async () => {
  world = await openFacadeWorld();
  controller = await world.start({ role: 'controller' });
  const facades = [await world.start({ role: 'facade' }), await world.start({ role: 'facade' })];
  ({ shop = '' } = await makeTenants(world, { shop: 'owner', partner: 'partner' }));
  const { cluster } = world.installation;
  await apply(cluster, [stream('shop', 'orders'), integration('shop', 'partner')]);
  await waitForAll(cluster, 'integration', 'shop');
  observer = observe(cluster.kubeconfig);
  client = connect({ kubeconfig: cluster.kubeconfig });
  [one, other] = (await Promise.all(facades.map(facade => world.as(facade, 'owner')))) as [RestClient, RestClient];
  for (const each of [one, other]) {
    await eventually(
      'the facade knows the owner',
      async () => (await each.get(`/waas/producer/${shop}/catalog`)).status === 200,
    );
  }
});

afterAll(async () => {
  await client?.close();
  await observer?.close();
  await world?.stop();
});

const wantedOf = (groupKey: string) => ({
  producerTenantPublicId: shop,
  groupKey,
  integrationPublicId: INTEGRATION,
});
const open = (client: RestClient, groupKey: string) =>
  client.post<Problem['body']>('/waas/activations', wantedOf(groupKey));
const close = (client: RestClient, groupKey: string) =>
  client.remove<Problem['body']>('/waas/activations', wantedOf(groupKey));

/** Waits until the object has this state. Does not wait for the controller. */
const says = (groupKey: string, revoked: boolean) =>
  eventually(
    `revoked is ${revoked}`,
    async () => {
      const name = { namespace: 'shop', name: activationObjectName('shop', 'partner', groupKey) };
      const found = await client.get<ObjectOf<'Activation'>>(resourceOf('Activation'), name);
      return found !== undefined && (found.spec.revoked ?? false) === revoked;
    },
    // A call waits for 5 s, so this must not take long, as starting kubectl does on a busy machine.
    { withinMs: 4_000, everyMs: 5 },
  );

async function whileNobodyReconciles<T>(work: () => Promise<T>): Promise<T> {
  await controller.kill('SIGSTOP');
  try {
    return await work();
  } finally {
    await controller.kill('SIGCONT');
  }
}

test('an activation that is overtaken by a deactivation returns that it was superseded, and the gate is closed', async () => {
  for (const [first, second] of [
    [one, one],
    [one, other],
  ] as const) {
    const [opened, closed] = await untilAllAnswered(async () => {
      expect((await untilAnswered(() => open(one, 'a'))).status).toBe(200);
      expect((await untilAnswered(() => close(one, 'a'))).status).toBe(204);
      const { opening, closing } = await whileNobodyReconciles(async () => {
        const opening = open(first, 'a');
        await says('a', false);
        const closing = close(second, 'a');
        await says('a', true);
        return { opening, closing };
      });
      return Promise.all([opening, closing] as const);
    });
    expect([opened.status, opened.body.code]).toEqual([409, 'superseded']);
    expect(closed.status).toBe(204);
    const name = activationObjectName('shop', 'partner', 'a');
    expect(await observer.conditionOf('Activation', name, 'shop', 'Effective')).toBe('False/Revoked');
  }
});

test('a deactivation that is overtaken by an activation returns 204, and the gate is open', async () => {
  const [opened, closed] = await untilAllAnswered(async () => {
    expect((await untilAnswered(() => open(one, 'b'))).status).toBe(200);
    const { opening, closing } = await whileNobodyReconciles(async () => {
      const closing = close(one, 'b');
      await says('b', true);
      const opening = open(other, 'b');
      await says('b', false);
      return { opening, closing };
    });
    return Promise.all([opening, closing] as const);
  });
  expect([opened.status, closed.status]).toEqual([200, 204]);
  const name = activationObjectName('shop', 'partner', 'b');
  expect(await observer.conditionOf('Activation', name, 'shop', 'Effective')).toBe('True/Routing');
});

test('changes do not return a success while no controller is running, and the same call works afterwards', async () => {
  expect((await open(one, 'c')).status).toBe(200);
  expect((await one.post(`/waas/producer/${shop}/packages`, { name: 'Basics' })).status).toBe(201);
  const basics = `/waas/producer/${shop}/packages/${publicId('Package', 'shop', 'basics')}`;
  const calls: (() => Promise<{ readonly status: number; readonly headers: Headers; readonly body: unknown }>)[] = [
    () => close(one, 'c'),
    () => open(one, 'd'),
    () => one.put(basics, { name: 'More than basics' }),
    () => one.post(`${basics}/streams`, { catalogEntryPublicId: publicId('CatalogStream', 'shop', 'orders') }),
    () => one.post(`/waas/producer/${shop}/integrations/${INTEGRATION}/blocks/packages/${basics.split('/').at(-1)}`),
  ];
  const refused = await whileNobodyReconciles(() => Promise.all(calls.map(call => call())));
  for (const { status, headers, body } of refused) {
    expect([status, (body as Problem['body']).code]).toEqual([503, 'not_in_force']);
    expect(headers.get('retry-after')).toMatch(/^\d+$/);
  }
  expect(await Promise.all(calls.map(async call => (await untilAnswered(call)).status))).toEqual([
    204, 200, 200, 204, 204,
  ]);
});

test('an activation does not use its old status after a flush', async () => {
  expect((await open(one, 'e')).status).toBe(200);
  const refused = await whileNobodyReconciles(async () => {
    await world.installation.redis.command('FLUSHALL');
    return open(one, 'e');
  });
  expect([refused.status, refused.body.code]).toEqual([503, 'not_in_force']);
  await eventually('the gate is restored', async () => (await open(one, 'e')).status === 200);
});

test('a group key that was just deleted with kubectl is closed when deactivating returns', async () => {
  await observer.apply(activation('shop', 'partner', 'f'));
  const { name } = activation('shop', 'partner', 'f').metadata;
  await observer.until(['Activation', name, 'shop', 'Effective', 'True/Routing']);
  const early = await whileNobodyReconciles(async () => {
    await observer.remove('Activation', name, 'shop');
    return close(one, 'f');
  });
  expect([early.status, early.body?.code]).toEqual([503, 'not_in_force']);
  expect((await untilAnswered(() => close(one, 'f'))).status).toBe(204);
  expect(await observer.exists('Activation', activationObjectName('shop', 'partner', 'f'), 'shop')).toBe(false);
});

test('an activation is not refused because of the status of a deleted revocation', async () => {
  const closer = activation('shop', 'partner', 'g', { revoked: true });
  await observer.apply(closer);
  await observer.until(['Activation', closer.metadata.name, 'shop', 'Effective', 'False/Revoked']);
  expect((await open(one, 'g')).body.code).toBe('revoked_elsewhere');
  const opening = await whileNobodyReconciles(async () => {
    await observer.remove('Activation', closer.metadata.name, 'shop');
    const reply = open(one, 'g');
    // The request is sent and waits before the controller reconciles anything.
    await delay(500);
    return { reply };
  });
  expect((await opening.reply).status).toBe(200);
});

test('a change that one replica has returned is known to the other replica immediately', async () => {
  for (let n = 0; n < 15; n++) {
    const name = `Turn ${n}`;
    const id = publicId('Package', 'shop', `turn-${n}`);
    const path = `/waas/producer/${shop}/packages/${id}`;
    const blocks = `/waas/producer/${shop}/integrations/${INTEGRATION}/blocks`;
    expect((await one.post(`/waas/producer/${shop}/packages`, { name })).status).toBe(201);
    const orders = publicId('CatalogStream', 'shop', 'orders');
    expect((await other.post(`${path}/streams`, { catalogEntryPublicId: orders })).status).toBe(204);
    expect((await other.post(`${blocks}/packages/${id}`)).status).toBe(204);
    const object = blockObjectName('shop', 'partner', 'Package', `turn-${n}`);
    expect((await one.remove(`${blocks}/packages/${id}`)).status).toBe(204);
    expect(await observer.exists('Block', object, 'shop')).toBe(false);
    expect((await other.post(`${path}/archive`)).status).toBe(204);
    expect((await one.post<Problem['body']>(`${blocks}/packages/${id}`)).body.code).toBe('package_archived');
    expect((await one.remove(`${path}/streams/${orders}`)).status).toBe(204);
    expect((await other.post<Problem['body']>(`${path}/streams`, { catalogEntryPublicId: orders })).body.code).toBe(
      'package_archived',
    );
  }
});
