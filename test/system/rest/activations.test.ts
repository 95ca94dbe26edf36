import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { activationId, publicId } from '../../../src/core/ids/ids.ts';
import { eventually } from '../support/deadline.ts';
import type { Reply } from '../support/rest-client.ts';
import { PRODUCER, QUEUE } from '../support/small-world.ts';
import { apply, integration, subscription, waitForAll } from '../support/world.ts';
import {
  type ActivationWorld,
  ALWAYS,
  integrationId,
  openActivationWorld,
  ownName,
  type ReadActivation,
} from './support/activation-world.ts';
import { expectDeclared } from './support/declared-answer.ts';

let world: ActivationWorld;
let { arrived, attempted, close, field, open, read, awaitMarker, send, wantedOf } = {} as ActivationWorld;

beforeAll(async () => {
  world = await openActivationWorld();
  ({ arrived, attempted, close, field, open, read, awaitMarker, send, wantedOf } = world);
});
afterAll(() => world?.stop());

describe('activating', () => {
  test('opens the gate for the next event, and returns the same response each time', async () => {
    const first = expectDeclared('activate', await open('store-1'));
    expect(first.body).toEqual({
      publicId: activationId(PRODUCER, 'ada', 'store-1'),
      groupKey: 'store-1',
      status: 'Active',
    });
    await arrived(await send('first', 'store-1'));
    const name = ownName('store-1');
    expect(await field(name, '{.spec}')).toBe('{"groupKey":"store-1","integration":"ada"}');
    const version = await field(name, '{.metadata.resourceVersion}');
    for (let n = 0; n < 3; n++) {
      const again = await open('store-1');
      expect([again.status, again.body]).toEqual([200, first.body]);
    }
    expect(await field(name, '{.metadata.resourceVersion}')).toBe(version);
  });

  test('and deactivating take effect for the next event, repeatedly and with the same id', async () => {
    const ids = new Set<unknown>();
    const closed: string[] = [];
    for (let n = 0; n < 20; n++) {
      ids.add((await open('store-2')).body.publicId);
      await arrived(await send(`open.${n}`, 'store-2'));
      expectDeclared('deactivate', await close('store-2'));
      closed.push(await send(`closed.${n}`, 'store-2'));
      await awaitMarker();
    }
    await open('store-2');
    await arrived(await send('open.last', 'store-2'));
    expect(closed.filter(id => attempted(id))).toEqual([]);
    expect([...ids]).toEqual([activationId(PRODUCER, 'ada', 'store-2')]);
  });

  test('with fifty concurrent calls creates one object, and returns fifty equal responses; so does deactivating', async () => {
    const replies = await Promise.all(Array.from({ length: 50 }, () => open('store-3')));
    expect([...new Set(replies.map(({ status, body }) => JSON.stringify([status, body])))]).toEqual([
      expect.stringMatching(/^\[200,/),
    ]);
    const list = await world.owner.get<{ data: ReadActivation[] }>(
      `/waas/producer/${world.shop}/activations?groupKey=store-3`,
    );
    expect(list.body.data.map(({ objects }) => objects)).toEqual([[ownName('store-3')]]);
    expect(await field(ownName('store-3'), '{.metadata.generation}')).toBe('1');
    const gone = await Promise.all(Array.from({ length: 50 }, () => close('store-3')));
    expect(new Set(gone.map(({ status }) => status))).toEqual(new Set([204]));
    expect(await field(ownName('store-3'), '{.metadata.generation}')).toBe('2');
  });

  test('accepts any valid group key, byte by byte', async () => {
    for (const groupKey of ['a/b c', 'Ünïcode ☃', 'x'.repeat(256), '%2F&=#']) {
      expect((await open(groupKey)).status).toBe(200);
      expect((await read(groupKey)).effective).toBe(true);
      const query = new URLSearchParams(wantedOf(groupKey));
      expect((await world.owner.remove(`/waas/activations?${query}`)).status).toBe(204);
      expect((await read(groupKey)).status).toBe('Revoked');
    }
  });

  test('while the partner has not accepted opens the gate, and earlier events are not routed later', async () => {
    await apply(world.facade.installation.cluster, [
      integration(PRODUCER, 'late', { workspace: undefined, invitedEmail: 'late@example.com' }),
    ]);
    const reply = expectDeclared('activate', await open('store-4', 'late'));
    expect(reply.body).toMatchObject({ status: 'Active' });
    expect((await open('store-4', 'late')).body).toEqual(reply.body);
    expect(await read('store-4', 'late')).toMatchObject({
      status: 'Active',
      effective: false,
      reason: 'IntegrationPending',
    });
    await send('early', 'store-4');
    await awaitMarker();
    await apply(world.facade.installation.cluster, [
      integration(PRODUCER, 'late', { workspace: 'other', invitedEmail: 'late@example.com' }),
      {
        ...subscription('other', PRODUCER, QUEUE, { url: world.small.receiver.urlOf('late') }, { integration: 'late' }),
      },
    ]);
    await waitForAll(world.facade.installation.cluster, 'subscription', 'other', 'Live');
    await arrived(await send('later', 'store-4'), 'late');
    expect(attempted('early', 'late')).toBe(false);
    await eventually('the activation is effective', async () => (await read('store-4', 'late')).reason === 'Routing');
  });

  test('is refused for a closed integration; deactivating is not', async () => {
    await apply(world.facade.installation.cluster, [integration(PRODUCER, 'leaver', { workspace: 'bob' })]);
    const isOpened = async () => (await open('store-5', 'leaver')).status === 200;
    await eventually('the cache contains the integration', isOpened);
    await apply(world.facade.installation.cluster, [
      integration(PRODUCER, 'leaver', { workspace: 'bob', revoked: true }),
      integration(PRODUCER, 'shy', { workspace: undefined, invitedEmail: 's@example.com', declined: true }),
    ]);
    for (const [partner, word] of [
      ['leaver', 'Revoked'],
      ['shy', 'Declined'],
    ] as const) {
      await eventually('the cache contains the closed integration', async () => {
        const refused = await open('store-5', partner);
        return refused.body.code === 'integration_closed' && refused.body.detail?.includes(word);
      });
    }
    expect(await world.small.observer.exists('Activation', ownName('store-5', 'shy'), PRODUCER)).toBe(false);
    expect((await close('store-5', 'shy')).status).toBe(204);
    expect((await close('store-5', 'leaver')).status).toBe(204);
    expect(await field(ownName('store-5', 'leaver'), '{.spec.revoked}')).toBe('true');
  });
});

test('lists filter by integration, group key, and status, and have pages', async () => {
  for (const key of ['list-a', 'list-b', 'list-c']) expect((await open(key, 'bob')).status).toBe(200);
  await close('list-b', 'bob');
  const path = `/waas/producer/${world.shop}/activations`;
  const keysOf = async (query: string) => {
    const reply = await world.owner.get<{ data: { groupKey: string }[]; nextCursor: string | null }>(
      `${path}?${query}`,
    );
    expectDeclared('listActivations', reply);
    return reply.body.data.map(({ groupKey }) => groupKey);
  };
  expect(await keysOf(`integration=${integrationId('bob')}`)).toEqual([ALWAYS, 'list-a', 'list-c']);
  expect(await keysOf(`integration=${integrationId('bob')}&status=Revoked`)).toEqual(['list-b']);
  expect(await keysOf(`integration=${integrationId('bob')}&status=all&groupKey=list-b`)).toEqual(['list-b']);
  expect(await keysOf('groupKey=list-a')).toEqual(['list-a']);
  const first = await world.owner.get<{ data: unknown[]; nextCursor: string }>(`${path}?limit=3&status=all`);
  const next = await world.owner.get<{ data: unknown[] }>(
    `${path}?limit=250&status=all&cursor=${first.body.nextCursor}`,
  );
  const whole = await world.owner.get<{ data: unknown[] }>(`${path}?limit=250&status=all`);
  expect([...first.body.data, ...next.body.data]).toEqual(whole.body.data);
  expectDeclared('getActivation', await world.owner.get(`${path}/${activationId(PRODUCER, 'bob', 'list-a')}`));
});

test('refuses unknown, malformed, and foreign ids', async () => {
  const none = '0'.repeat(20);
  const wanted = wantedOf('store-13');
  const post = (body: unknown) => world.owner.post('/waas/activations', body);
  const cases: [expected: number, reply: Promise<Reply>][] = [
    [404, post({ ...wanted, integrationPublicId: `int_${none}` })],
    [404, post({ ...wanted, integrationPublicId: publicId('Integration', 'other', 'ada') })],
    [422, post({ ...wanted, integrationPublicId: 'ada' })],
    [422, post({ ...wanted, groupKey: '' })],
    [422, post({ ...wanted, groupKey: ' a' })],
    [422, post({ ...wanted, groupKey: 'a\nb' })],
    [422, post({ ...wanted, groupKey: 'ä'.repeat(129) })],
    [422, post({ ...wanted, groupKey: 7 })],
    [422, post({ ...wanted, colour: 'red' })],
    [422, post({})],
    [404, world.owner.get(`/waas/producer/${world.shop}/activations/act_${none}`)],
    [404, world.owner.get(`/waas/producer/${world.shop}/activations?integration=int_${none}`)],
    [400, world.owner.get(`/waas/producer/${world.shop}/activations/store-13`)],
    [400, world.owner.get(`/waas/producer/${world.shop}/activations?cursor=%00`)],
    [422, world.owner.get(`/waas/producer/${world.shop}/activations?status=Open`)],
    [403, world.eve.post('/waas/activations', wanted)],
    [403, world.eve.remove('/waas/activations', wanted)],
    [403, world.eve.get(`/waas/producer/${world.shop}/activations`)],
    [404, world.eve.get(`/waas/producer/${world.other}/activations/${activationId(PRODUCER, 'bob', ALWAYS)}`)],
  ];
  expect(await Promise.all(cases.map(async ([, reply]) => (await reply).status))).toEqual(
    cases.map(([status]) => status),
  );
  const absent = await world.eve.post('/waas/activations', { ...wanted, producerTenantPublicId: `ten_${none}` });
  expect(absent.body).toEqual((await world.eve.post('/waas/activations', wanted)).body);
  expect(await world.small.observer.exists('Activation', ownName('store-13'), PRODUCER)).toBe(false);
});
