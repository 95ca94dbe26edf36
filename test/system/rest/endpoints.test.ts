import { afterAll, beforeAll, expect, test } from 'vitest';
import type { z } from 'zod';
import { publicId } from '../../../src/core/ids/ids.ts';
import { subscriptionObjectName } from '../../../src/core/ids/object-names.ts';
import type { SubscriptionEntry } from '../../../src/facade/resources/subscriptions/subscription-views.ts';
import { eventually } from '../support/deadline.ts';
import type { Problem } from '../support/rest-client.ts';
import { apply, kubectl, stream, subscription, waitForAll } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { openPartnerInbox, type PartnerInbox } from './support/partner-inbox.ts';

type Entry = z.output<typeof SubscriptionEntry>;
interface Secrets {
  readonly secretVersion: number;
  readonly secret: string;
  readonly previous: { readonly secret: string; readonly until: string } | null;
}

const URL = 'https://ada.example/hook';

let inbox: PartnerInbox;
let { ada, root, pulled } = {} as PartnerInbox;

beforeAll(async () => {
  inbox = await openPartnerInbox(0);
  ({ ada, root, pulled } = inbox);
});
afterAll(() => inbox?.stop());

const pathOf = (id: string) => `${root}/subscriptions/${id}`;
const nameOf = (streamName: string) => subscriptionObjectName('shop', 'ada', streamName);
const visits = `subscription/${nameOf('visits')}`;
const read = (what: string, path: string) =>
  kubectl(inbox.world.installation.cluster, ['get', what, '-n', 'ada', '-o', `jsonpath=${path}`]);

test('an endpoint can be changed, paused, and removed, and the secret is never reset', async () => {
  const path = pathOf(pulled);
  const noEndpoint: Problem = await ada.post(`${path}/rotate`);
  expect([noEndpoint.status, noEndpoint.body.code]).toEqual([409, 'no_endpoint']);
  const wish = { endpoint: { url: URL, timeoutSeconds: 3, retrySchedule: ['1s'] }, suspended: true };
  const changed = expectDeclared('changeSubscription', await ada.put<Entry>(path, wish));
  expect(changed.body).toMatchObject({
    endpoint: { url: URL, timeoutSeconds: 3, retrySchedule: ['1s'] },
    suspended: true,
    status: 'Paused',
    reason: 'Suspended',
  });
  const before = await read(visits, '{.metadata.generation}');
  for (let n = 0; n < 3; n++) expect((await ada.put(path, wish)).body).toEqual(changed.body);
  expect(await read(visits, '{.metadata.generation}')).toBe(before);
  const suspended: Problem = await ada.post(`${path}/test`);
  expect([suspended.status, suspended.body.code]).toEqual([409, 'subscription_not_live']);

  const secret = async () => (await ada.get<Secrets>(`${path}/secret`)).body;
  const first = await secret();
  expect(first).toMatchObject({ secretVersion: 1, previous: null });
  const rotated = expectDeclared(
    'rotateSigningSecret',
    await ada.post<Secrets>(`${path}/rotate`, { secretVersion: 2 }),
  );
  expect(rotated.body).toMatchObject({ secretVersion: 2, previous: { secret: first.secret } });
  // If a response is lost, the call is repeated. The first secret is still used for signing.
  expect((await ada.post(`${path}/rotate`)).body).toEqual(rotated.body);
  for (let n = 0; n < 3; n++) {
    expect((await ada.post(`${path}/rotate`, { secretVersion: 2 })).body).toEqual(rotated.body);
  }
  const stale: Problem = await ada.post(`${path}/rotate`, { secretVersion: 9 });
  expect([stale.status, stale.body.code]).toEqual([409, 'changed_meanwhile']);
  expect((await ada.get(`${path}/secret`)).body).toEqual(rotated.body);
  const mirrored = await read(`secret/${nameOf('visits')}-signing`, '{.data.secret}');
  expect(Buffer.from(mirrored, 'base64').toString()).toBe(rotated.body.secret);

  expect((await ada.put<Entry>(path, { endpoint: null })).body).toMatchObject({ endpoint: null, suspended: false });
  expect((await ada.put<Entry>(path, { endpoint: { url: URL } })).body).toMatchObject({ status: 'Live' });
  expect(await secret()).toMatchObject({ secretVersion: 2, secret: rotated.body.secret });
  const third = await ada.post<Secrets>(`${path}/rotate`, { secretVersion: 3 });
  expect(third.body).toMatchObject({ secretVersion: 3, previous: { secret: rotated.body.secret } });

  const enabled = expectDeclared('enableEndpoint', await ada.post<Entry>(`${path}/enable`));
  expect(enabled.body).toMatchObject({ endpoint: { url: URL }, status: 'Live' });
  expect(await read(visits, '{.spec.endpoint.enabledAt}')).toMatch(/^\d{4}-.*Z$/);
  expect((await ada.put<Entry>(path, { endpoint: { url: `${URL}/2` } })).status).toBe(200);
  expect((await secret()).secretVersion).toBe(3);
});

test('an endpoint that must not be called is stored, and its status shows this', async () => {
  const refused = await ada.put<Entry>(pathOf(pulled), { endpoint: { url: 'https://10.1.2.3/hook' } });
  expect(refused.status, JSON.stringify(refused.body)).toBe(200);
  expect(refused.body).toMatchObject({ status: 'Paused', reason: 'EndpointRefused' });
  const test: Problem = await ada.post(`${pathOf(pulled)}/test`);
  expect([test.status, test.body.code]).toEqual([409, 'subscription_not_live']);
  expect(test.body.detail).toContain('Events are kept in the inbox because the endpoint is not allowed');
  expect(test.body.detail).toContain('its address is neither public nor in a network allowed by the operator');
  const events = [{ id: `evt_${'0'.repeat(15)}${pulled.slice(4)}` }];
  for (const [call, more] of [
    ['pull', {}],
    ['acknowledge', { events }],
  ] as const) {
    const reply: Problem = await ada.post(`${root}/${call}`, { subscription: pulled, ...more });
    expect([reply.status, reply.body.code], call).toEqual([409, 'has_endpoint']);
  }
});

test('a subscription of kubectl can be rotated and read, but only its manager can change it', async () => {
  const { cluster } = inbox.world.installation;
  await apply(cluster, [stream('shop', 'stock')]);
  await waitForAll(cluster, 'catalogstream', 'shop');
  const manifest = subscription('ada', 'shop', 'stock', { url: URL });
  const line = ['apply', '--server-side', '--field-manager=argocd', '-f', '-'];
  await kubectl(cluster, line, JSON.stringify(manifest));
  await waitForAll(cluster, 'subscription', 'ada', 'Ready');
  const id = publicId('Subscription', 'ada', 'shop-stock');
  const found = await eventually('the facade sees it', async () => {
    const body = { catalogEntryPublicId: publicId('CatalogStream', 'shop', 'stock'), endpoint: { url: URL } };
    const reply = await ada.post<Entry>(`${root}/subscriptions`, body);
    return reply.status === 200 && reply;
  });
  expect(found.value.body.publicId).toBe(id);
  const path = pathOf(id);
  const other: Problem = await ada.put(path, { endpoint: { url: 'https://b.example' } });
  expect([other.status, other.body.code]).toEqual([409, 'field_managed']);
  expect(other.body.detail).toContain('argocd');
  const rotated = await ada.post<Secrets>(`${path}/rotate`);
  expect(rotated.body, JSON.stringify(rotated.body)).toMatchObject({ secretVersion: 2 });
  expect((await ada.post(`${path}/enable`)).status).toBe(200);
  expect((await ada.get<Secrets>(`${path}/secret`)).body.secretVersion).toBe(2);
  // Its manager continues to change its own fields without a conflict and does not undo the rotation.
  await kubectl(cluster, line, JSON.stringify(subscription('ada', 'shop', 'stock', { url: `${URL}/moved` })));
  expect(await read('subscription/shop-stock', '{.spec.endpoint.url} {.spec.endpoint.secretVersion}')).toBe(
    `${URL}/moved 2`,
  );
});
