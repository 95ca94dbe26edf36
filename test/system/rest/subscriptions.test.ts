import { afterAll, beforeAll, expect, test } from 'vitest';
import type { z } from 'zod';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { subscriptionObjectName } from '../../../src/core/ids/object-names.ts';
import type { SubscriptionEntry } from '../../../src/facade/resources/subscriptions/subscription-views.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import type { Problem, RestClient } from '../support/rest-client.ts';
import { apply, block, integration, kubectl, pkg, stream, subscription, waitForAll } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './support/facade-world.ts';

type Entry = z.output<typeof SubscriptionEntry>;

const STREAMS = ['orders', 'refunds', 'visits', 'carts', 'stock'];
const URL = 'https://ada.example/hook';

let world: FacadeWorld;
let sluice: Sluice;
let second: Sluice;
let shop: RestClient;
let ada: RestClient;
let elsewhere: RestClient;
let eve: RestClient;

const intg = (name: string) => publicId('Integration', 'shop', name);
const cat = (name: string) => publicId('CatalogStream', 'shop', name);
const receiving = (name = 'ada') => `/waas/integrations/${intg(name)}`;
const subscriptions = `${receiving()}/subscriptions`;
const nameOf = (streamName: string, partner = 'ada') => subscriptionObjectName('shop', partner, streamName);
const idOf = (streamName: string) => publicId('Subscription', 'ada', nameOf(streamName));
const pathOf = (streamName: string) => `${subscriptions}/${idOf(streamName)}`;
const blocksOf = (partner: string) => `/waas/producer/${tenantId('shop')}/integrations/${intg(partner)}/blocks`;

beforeAll(async () => {
  world = await openFacadeWorld();
  sluice = await world.start();
  second = await world.start({ role: 'facade' });
  await makeTenants(world, { shop: 'owner', ada: 'ada', eve: 'eve' });
  await apply(world.installation.cluster, [
    ...STREAMS.map(name => stream('shop', name)),
    stream('shop', 'old', { public: false }),
    integration('shop', 'ada'),
    integration('shop', 'eve'),
  ]);
  await waitForAll(world.installation.cluster, 'catalogstream', 'shop');
  await waitForAll(world.installation.cluster, 'integration', 'shop');
  [shop, ada, elsewhere, eve] = await Promise.all([
    world.as(sluice, 'owner'),
    world.as(sluice, 'ada'),
    world.as(second, 'ada'),
    world.as(sluice, 'eve'),
  ]);
  await eventually('both facades know the partner', async () => (await elsewhere.get(receiving())).status === 200);
});
afterAll(() => world?.stop());

const subscribe = (client: RestClient, name: string, wish: object = {}, partner = 'ada') =>
  client.post<Entry>(`${receiving(partner)}/subscriptions`, { catalogEntryPublicId: cat(name), ...wish });

const read = (what: string, path: string, namespace = 'ada') =>
  kubectl(world.installation.cluster, ['get', what, '-n', namespace, '-o', `jsonpath=${path}`]);
const versionOf = (name: string) => read(`subscription/${name}`, '{.metadata.resourceVersion}');
const objects = () => read('subscription', '{.items[*].metadata.name}');

test('a partner can read its integration and the published streams; others cannot', async () => {
  const seen = expectDeclared('getPartnerIntegration', await ada.get(receiving()));
  expect(seen.body).toEqual({
    publicId: intg('ada'),
    producerTenantPublicId: tenantId('shop'),
    receivingTenantPublicId: tenantId('ada'),
    status: 'Active',
  });
  for (const [client, partner] of [
    [ada, 'ada'],
    [eve, 'eve'],
  ] as const) {
    const listed = expectDeclared(
      'listPartnerIntegrations',
      await client.get<{ data: { publicId: string }[] }>('/waas/integrations'),
    );
    // A direct grant is not listed until the partner has subscribed.
    expect([partner, listed.body.data]).toEqual([partner, []]);
  }
  expect((await shop.get('/waas/integrations')).body).toEqual({ data: [], nextCursor: null });
  const catalog = expectDeclared(
    'listPartnerCatalog',
    await ada.get<{ data: Record<string, unknown>[] }>(`${receiving()}/catalog`),
  );
  expect(catalog.body.data.map(({ key }) => key)).toEqual(STREAMS.toSorted());
  expect(catalog.body.data[0]).toMatchObject({ subscribed: false, subscriptionPublicId: null, blocked: false });
  expect(catalog.body.data[0]).not.toHaveProperty('payloadSchema');
  const single = await ada.get(`${receiving()}/catalog/${cat('orders')}`);
  expect(expectDeclared('getPartnerCatalogEntry', single).body).toMatchObject({ key: 'orders', payloadSchema: null });
  for (const name of ['old', 'nothing'])
    expect((await ada.get(`${receiving()}/catalog/${cat(name)}`)).status).toBe(404);
  expect((await eve.get(`${receiving()}/catalog/${cat('orders')}`)).status).toBe(403);
  for (const path of ['', '/catalog', '/subscriptions', `/events?subscription=${idOf('orders')}`]) {
    const foreign = await eve.get(`${receiving()}${path}`);
    const absent = await eve.get(`/waas/integrations/int_00000000000000000000${path}`);
    expect([foreign.status, absent.status]).toEqual([403, 403]);
    expect(foreign.body).toEqual(absent.body);
  }
  expect((await shop.get(receiving())).status).toBe(403);
});

test('subscribing creates one object, even if it is repeated, and the partner sees it', async () => {
  const wish = { endpoint: { url: URL, headers: [{ name: 'x-key', value: 'a secret value' }] } };
  const first = expectDeclared('subscribe', await subscribe(ada, 'orders', wish));
  expect(first.status).toBe(201);
  expect(first.headers.get('location')).toBe(pathOf('orders'));
  expect(first.body).toMatchObject({
    publicId: idOf('orders'),
    catalogEntryPublicId: cat('orders'),
    key: 'orders',
    endpoint: { url: URL, timeoutSeconds: 15, headers: [{ name: 'x-key' }] },
    ordering: 'ByGroupKey',
    status: 'Live',
  });
  expect(JSON.stringify(first.body)).not.toContain('a secret value');
  const before = await versionOf(nameOf('orders'));
  for (let n = 0; n < 3; n++) {
    const again = expectDeclared('subscribe', await subscribe(n === 1 ? elsewhere : ada, 'orders', wish));
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);
  }
  expect(await versionOf(nameOf('orders'))).toBe(before);
  const integrations = await ada.get<{ data: { publicId: string }[] }>('/waas/integrations');
  expect(integrations.body.data.map(each => each.publicId)).toEqual([intg('ada')]);
  const other: Problem = await ada.post(subscriptions, {
    catalogEntryPublicId: cat('orders'),
    endpoint: { url: 'https://b.example' },
  });
  expect([other.status, other.body.code]).toEqual([409, 'subscription_exists']);
  expect(other.body.detail).toContain(idOf('orders'));

  expect(expectDeclared('getSubscription', await ada.get(pathOf('orders'))).body).toEqual(first.body);
  const list = expectDeclared('listSubscriptions', await ada.get<{ data: unknown[] }>(subscriptions));
  expect(list.body.data).toEqual([first.body]);
  const catalog = await ada.get<{ data: Record<string, unknown>[] }>(`${receiving()}/catalog`);
  expect(catalog.body.data.find(({ key }) => key === 'orders')).toMatchObject({
    subscribed: true,
    subscriptionPublicId: idOf('orders'),
  });
  expect((await eve.get(`${receiving('eve')}/subscriptions/${idOf('orders')}`)).status).toBe(404);
});

test('the response of a read can be changed and sent back without losing hidden fields', async () => {
  const spec = () => read(`subscription/${nameOf('orders')}`, '{.spec}').then(text => JSON.parse(text) as object);
  const before = (await spec()) as { endpoint: object };
  const { endpoint } = (await ada.get<Entry>(pathOf('orders'))).body;
  const refused: Problem = await ada.put(pathOf('orders'), { suspended: true });
  expect([refused.status, refused.body.errors?.[0]?.pointer]).toEqual([422, '/endpoint']);
  const unknown = { ...endpoint, headers: [{ name: 'x-other' }] };
  const valueless: Problem = await ada.put(pathOf('orders'), { endpoint: unknown });
  expect([valueless.status, valueless.body.errors?.[0]?.pointer]).toEqual([422, '/endpoint/headers/0/value']);
  expect(await spec()).toEqual(before);

  const slower = { ...endpoint, timeoutSeconds: 20 };
  const changed = expectDeclared('changeSubscription', await ada.put<Entry>(pathOf('orders'), { endpoint: slower }));
  expect(changed.body.endpoint).toEqual(slower);
  expect(await spec()).toMatchObject({ endpoint: { ...before.endpoint, timeoutSeconds: 20 } });

  const without = await ada.put<Entry>(pathOf('orders'), { endpoint: null });
  expect([without.status, without.body.endpoint]).toEqual([200, null]);
  expect((await ada.put<Entry>(pathOf('orders'), { suspended: false })).status).toBe(200);
  const headers = [{ name: 'x-key', value: 'a secret value' }];
  expect((await ada.put<Entry>(pathOf('orders'), { endpoint: { url: URL, headers } })).status).toBe(200);
});

test('20 concurrent equal calls create one object', async () => {
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, n) => subscribe(n % 2 === 0 ? ada : elsewhere, 'carts', { ordering: 'None' })),
  );
  expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  for (const reply of replies) expect([200, 201]).toContain(expectDeclared('subscribe', reply).status);
  expect((await ada.get<{ data: unknown[] }>(subscriptions)).body.data).toHaveLength(2);
});

test('only one of several concurrent calls with different endpoints creates the subscription, on any facade', async () => {
  const facades = [eve, await world.as(second, 'eve')];
  for (const name of ['orders', 'visits', 'carts']) {
    const urls = Array.from({ length: 4 }, (_, n) => `${URL}/${n}`);
    const replies = await Promise.all(
      urls.map((url, n) => subscribe(facades[n % 2] as RestClient, name, { endpoint: { url } }, 'eve')),
    );
    const made = replies.findIndex(({ status }) => status === 201);
    const others = replies
      .toSpliced(made, 1)
      .map(({ status, body }) => `${status} ${(body as { code?: string }).code}`);
    expect(others).toEqual(Array.from({ length: 3 }, () => '409 subscription_exists'));
    const path = `${receiving('eve')}/subscriptions/${replies[made]?.body.publicId}`;
    expect((await eve.get<Entry>(path)).body.endpoint?.url).toBe(urls[made]);
    expect((await eve.remove(path)).status).toBe(204);
  }
});

test('while a stream is blocked, subscribing is refused and existing subscriptions are paused', async () => {
  await apply(world.installation.cluster, [
    pkg('shop', 'all', ['orders', 'visits']),
    block('shop', 'kept', { integration: 'ada', target: { kind: 'Package', name: 'all' } }),
  ]);
  await waitForAll(world.installation.cluster, 'block', 'shop', 'Enforced');
  const before = await objects();
  for (let n = 0; n < 3; n++) {
    const refused: Problem = await ada.post(subscriptions, { catalogEntryPublicId: cat('visits') });
    expect([refused.status, refused.body.code]).toEqual([409, 'stream_blocked']);
    expect(JSON.stringify(refused.body)).not.toMatch(/kept|pkg_|"all"/);
  }
  expect(await objects()).toBe(before);
  const wish = { endpoint: { url: URL, headers: [{ name: 'x-key', value: 'a secret value' }] } };
  expect((await subscribe(ada, 'orders', wish)).status).toBe(409);
  await eventually('the partner sees the pause', async () => {
    const { body } = await ada.get<Entry>(pathOf('orders'));
    return body.status === 'Paused' && body.reason === 'Blocked';
  });
  const catalog = await ada.get<{ data: Record<string, unknown>[] }>(`${receiving()}/catalog`);
  expect(catalog.body.data.filter(({ blocked }) => blocked).map(({ key }) => key)).toEqual(['orders', 'visits']);
  const test: Problem = await ada.post(`${pathOf('orders')}/test`);
  expect([test.status, test.body.code]).toEqual([409, 'stream_blocked']);

  await kubectl(world.installation.cluster, ['delete', 'block', 'kept', '-n', 'shop']);
  await eventually('the subscription is not blocked', async () => (await subscribe(ada, 'visits')).status === 201);
});

test('a block that another facade has just returned is always detected', async () => {
  for (let n = 0; n < 12; n++) {
    const blocked = await shop.post(`${blocksOf('eve')}/streams/${cat('stock')}`);
    expect(blocked.status, JSON.stringify(blocked.body)).toBe(204);
    const client = await world.as(second, 'eve');
    const refused: Problem = await client.post(`${receiving('eve')}/subscriptions`, {
      catalogEntryPublicId: cat('stock'),
    });
    expect([refused.status, refused.body.code]).toEqual([409, 'stream_blocked']);
    expect((await shop.remove(`${blocksOf('eve')}/streams/${cat('stock')}`)).status).toBe(204);
    const taken = await subscribe(client, 'stock', {}, 'eve');
    expect(taken.status, JSON.stringify(taken.body)).toBe(201);
    expect((await client.remove(`${receiving('eve')}/subscriptions/${taken.body.publicId}`)).status).toBe(204);
  }
});

test('a deprecated stream does not accept new subscriptions, and existing subscriptions continue', async () => {
  const refused: Problem = await ada.post(subscriptions, { catalogEntryPublicId: cat('old') });
  expect([refused.status, refused.body.code]).toEqual([409, 'stream_deprecated']);
  expect((await subscribe(ada, 'refunds')).status).toBe(201);
  await apply(world.installation.cluster, [stream('shop', 'refunds', { public: false })]);
  await eventually('the catalog shows it', async () => {
    const { body } = await ada.get<{ data: Record<string, unknown>[] }>(`${receiving()}/catalog`);
    return body.data.find(({ key }) => key === 'refunds')?.['status'] === 'Deprecated';
  });
  expect((await subscribe(ada, 'refunds')).body).toMatchObject({ status: 'Live' });
  expect((await ada.get<Entry>(pathOf('refunds'))).body.status).toBe('Live');
});

test('a subscription of kubectl that was not admitted is refused with the reason', async () => {
  const { cluster } = world.installation;
  await apply(cluster, [
    subscription('ada', 'shop', 'old', undefined),
    subscription('ada', 'shop', 'planned', undefined),
  ]);
  const deprecated = async (): Promise<Problem> => ada.post(subscriptions, { catalogEntryPublicId: cat('old') });
  await eventually(
    'the subscription is reconciled',
    async () => (await read('subscription/shop-old', '{.status.conditions}')) !== '',
  );
  const refused = await deprecated();
  expect([refused.status, refused.body.code]).toEqual([409, 'stream_deprecated']);
  const waiting = `${subscriptions}/${publicId('Subscription', 'ada', 'shop-planned')}`;
  const { value } = await eventually('the facade knows the subscription', async () => {
    const reply: Problem = await ada.put(waiting, { suspended: true });
    return reply.body.detail?.includes('stream') && reply;
  });
  expect([value.status, value.body.code]).toEqual([404, 'unknown_resource']);
  expect(await read('subscription/shop-planned', '{.spec.suspended}')).toBe('');
});

test.each([
  ['an unknown field', { colour: 1 }, ['/colour']],
  ['an invalid URL', { endpoint: { url: 'ada.example' } }, ['/endpoint/url']],
  [
    'a header that is ours',
    { endpoint: { url: URL, headers: [{ name: 'webhook-id', value: '1' }] } },
    ['/endpoint/headers/0/name'],
  ],
  ['an invalid delay', { endpoint: { url: URL, retrySchedule: ['soon'] } }, ['/endpoint/retrySchedule/0']],
  ['null', { endpoint: null }, ['/endpoint']],
])('%s is reported with 422', async (_what, wish, pointers) => {
  const reply: Problem = await ada.post(subscriptions, { catalogEntryPublicId: cat('orders'), ...wish });
  expect(reply.status).toBe(422);
  expect(reply.body.errors?.map(({ pointer }) => pointer)).toEqual(pointers);
});

test('unsubscribing can be repeated, and a new subscription starts again', async () => {
  for (let n = 0; n < 3; n++) {
    expect(expectDeclared('unsubscribe', await ada.remove(pathOf('orders'))).status).toBe(204);
    expect((await ada.get(pathOf('orders'))).status).toBe(404);
  }
  expect((await ada.remove(`${subscriptions}/sub_00000000000000000000`)).status).toBe(204);
  expect((await subscribe(ada, 'nothing')).status).toBe(404);
  expect((await subscribe(ada, 'orders')).status).toBe(201);
});

test('a subscription from Git remains, and the response names its manager; while Git deletes it, REST can delete it, too', async () => {
  const { cluster } = world.installation;
  const fromGit = subscription('ada', 'shop', 'visits', undefined);
  const asGit = ['--server-side', '--field-manager=argocd-controller', '-f', '-'];
  await kubectl(cluster, ['apply', ...asGit], JSON.stringify(fromGit));
  const { name } = fromGit.metadata;
  const path = `${subscriptions}/${publicId('Subscription', 'ada', name)}`;
  await eventually('REST returns the subscription', async () => (await ada.get(path)).status === 200);
  // The version changes until the controller has written the status.
  const accepted = ['--for=condition=Ready=false', `subscription/${name}`, '-n', 'ada', '--timeout=120s'];
  await kubectl(cluster, ['wait', ...accepted]);
  const version = await versionOf(name);
  const refused: Problem = await ada.remove(path);
  expect([refused.status, refused.body.code]).toEqual([409, 'managed_elsewhere']);
  expect(refused.body.detail).toContain(`Subscription ${name} in the namespace ada is managed by argocd-controller.`);
  expect(await versionOf(name)).toBe(version);
  // The same request is sent while Git is deleting the subscription.
  await kubectl(cluster, ['delete', 'subscription', name, '-n', 'ada', '--wait=false']);
  expect((await ada.remove(path)).status).toBe(204);
  expect(await objects()).not.toContain(name);
});

test('a revoked integration does not accept subscriptions', async () => {
  const kept = await subscribe(eve, 'visits', {}, 'eve');
  expect(kept.status).toBe(201);
  const revoked = await shop.post(`/waas/producer/${tenantId('shop')}/integrations/${intg('eve')}/revoke`);
  expect(revoked.status, JSON.stringify(revoked.body)).toBe(204);
  for (const facade of [sluice, second]) {
    const client = await world.as(facade, 'eve');
    const refused: Problem = await client.post(`${receiving('eve')}/subscriptions`, {
      catalogEntryPublicId: cat('orders'),
    });
    expect([refused.status, refused.body.code]).toEqual([409, 'integration_not_active']);
  }
  await eventually(
    'the partner sees the revocation',
    async () => (await eve.get<{ status: string }>(receiving('eve'))).body.status === 'Revoked',
  );
  expect(((await eve.get(`${receiving('eve')}/catalog`)) as Problem).body.code).toBe('integration_not_active');
  const path = `${receiving('eve')}/subscriptions/${kept.body.publicId}`;
  for (const call of [
    subscribe(eve, 'visits', {}, 'eve'),
    eve.put(path, { suspended: true }),
    eve.post(`${path}/test`),
  ]) {
    const reply = (await call) as Problem;
    expect([reply.status, reply.body.code]).toEqual([409, 'integration_not_active']);
  }
  expect((await eve.get<Entry>(path)).body.status).toBe('Closed');
});

test('after the producer has deleted an integration, its partner can still list, read, and delete the subscription', async () => {
  const { cluster } = world.installation;
  const name = nameOf('visits', 'eve');
  const path = `${receiving('eve')}/subscriptions/${publicId('Subscription', 'eve', name)}`;
  const listed = async () =>
    (await eve.get<{ data: Record<string, string>[] }>('/waas/integrations')).body.data.map(
      ({ publicId: id, status }) => [id, status],
    );
  const refusals = async () => {
    const calls = [
      eve.get(`${receiving('eve')}/catalog`),
      eve.post(`${receiving('eve')}/subscriptions`, { catalogEntryPublicId: cat('orders') }),
      eve.put(path, { suspended: true }),
      eve.post(`${path}/test`),
    ];
    return (await Promise.all(calls)).map(each => (each as Problem).body.code);
  };
  const closed = { publicId: publicId('Subscription', 'eve', name), status: 'Closed', reason: 'IntegrationClosed' };
  await kubectl(cluster, ['delete', 'integration', 'eve', '-n', 'shop']);
  const asSeen = async () => {
    const { body } = await eve.get<{ data: Entry[] }>(`${receiving('eve')}/subscriptions`);
    expect(body.data).toEqual([expect.objectContaining(closed)]);
    expect((await eve.get<Entry>(path)).body).toMatchObject(closed);
    expect((await eve.get<{ status: string }>(receiving('eve'))).body.status).toBe('Revoked');
    expect(await listed()).toEqual([[intg('eve'), 'Revoked']]);
    expect(await refusals()).toEqual(Array.from({ length: 4 }, () => 'integration_not_active'));
  };
  await eventually('the facade sees the deletion', async () => (await ada.get(receiving('eve'))).status === 403);
  await asSeen();
  // The name is used for another partner now. The former partner does not notice.
  await apply(cluster, [integration('shop', 'eve', { workspace: 'ada' })]);
  await eventually('the other partner has access', async () => (await ada.get(receiving('eve'))).status === 200);
  await asSeen();
  expect((await eve.remove(path)).status).toBe(204);
  expect(await read('subscription', '{.items[*].metadata.name}', 'eve')).toBe('');
  await eventually('the integration is gone', async () => (await eve.get(receiving('eve'))).status === 403);
  expect(await listed()).toEqual([]);
});
