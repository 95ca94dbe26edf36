import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { subscriptionObjectName } from '../../../src/core/ids/object-names.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { apply, kubectl, type Manifest, stream, subscription, waitForAll } from '../support/world.ts';
import { openPartnerInbox, type PartnerInbox } from './support/partner-inbox.ts';

const VALUE = 'Bearer a-value-given-over-REST';
const ORDERS = subscriptionObjectName('shop', 'ada', 'orders');

let inbox: PartnerInbox;
let path: string;

beforeAll(async () => {
  inbox = await openPartnerInbox(0);
  path = `${inbox.root}/subscriptions/${inbox.pushed}`;
});
afterAll(() => inbox?.stop());

const read = (name: string, field: string) =>
  kubectl(inbox.world.installation.cluster, [
    'get',
    `subscription/${name}`,
    '-n',
    'ada',
    '-o',
    `jsonpath=${field}`,
    '--show-managed-fields',
  ]);
const endpointWith = (headers: object[]) => ({
  endpoint: { url: inbox.receiver.urlOf('ada'), retrySchedule: ['100ms', '1h'], headers },
});
const header = (value?: string) => endpointWith([{ name: 'Authorization', ...(value === undefined ? {} : { value }) }]);

async function arrivedWith(id: string): Promise<string | undefined> {
  await inbox.publisher.publish(makeSample(id, 'red', id));
  await eventually(`${id} is delivered`, async () => inbox.receiver.delivered('ada').has(id));
  return inbox.receiver.attempts.findLast(attempt => attempt.id === id)?.headers['authorization'] as string | undefined;
}

test('a value that was set using REST is sent, and is not stored in any custom resource', async () => {
  expect(await inbox.ada.put(path, header(VALUE))).toMatchObject({
    status: 200,
    body: { status: 'Live', endpoint: { headers: [{ name: 'Authorization' }] } },
  });
  expect(await arrivedWith('first')).toBe(VALUE);
  const whole = await read(ORDERS, '{}');
  expect(whole).toContain('"valueSealed":"s2.');
  for (const text of [VALUE, Buffer.from(VALUE).toString('base64'), 'a-value-given']) expect(whole).not.toContain(text);
  expect((await inbox.ada.get(path)).body).toMatchObject({ endpoint: { headers: [{ name: 'Authorization' }] } });
});

test('repeating the request does not change anything, and neither does a request that keeps the value', async () => {
  const before = await read(ORDERS, '{.metadata.generation}');
  for (const wish of [header(VALUE), header(), header(VALUE)]) {
    expect((await inbox.ada.put(path, wish)).status).toBe(200);
  }
  const again = await inbox.ada.post(`${inbox.root}/subscriptions`, {
    catalogEntryPublicId: publicId('CatalogStream', 'shop', 'orders'),
    ...header(VALUE),
  });
  expect(again.status).toBe(200);
  expect(await read(ORDERS, '{.metadata.generation}')).toBe(before);
  const other = await inbox.ada.post(`${inbox.root}/subscriptions`, {
    catalogEntryPublicId: publicId('CatalogStream', 'shop', 'orders'),
    ...header(`${VALUE}!`),
  });
  expect(other).toMatchObject({ status: 409, body: { code: 'subscription_exists' } });
});

test('a sealed value that was copied to another subscription or header is not sent', async () => {
  const { cluster } = inbox.world.installation;
  const valueSealed = await read(ORDERS, '{.spec.endpoint.headers[0].valueSealed}');
  await apply(cluster, [
    stream('shop', 'stock'),
    subscription('ada', 'shop', 'stock', {
      url: inbox.receiver.urlOf('thief'),
      headers: [{ name: 'Authorization', valueSealed }],
    }),
  ]);
  const live = '{.status.conditions[?(@.type=="Live")]';
  await eventually(
    'the copy cannot be decrypted',
    async () => (await read('shop-stock', `${live}.reason}`)) === 'HeaderNotReadable',
  );
  const message = await read('shop-stock', `${live}.message}`);
  expect(message).toContain('Set the value again using the REST API');
  expect(message).toContain('(header Authorization)');
  expect(message).not.toContain(valueSealed);
  await apply(cluster, [
    subscription('ada', 'shop', 'stock', {
      url: inbox.receiver.urlOf('thief'),
      headers: [{ name: 'Authorization', value: 'plain' }],
    }),
  ]);
  await eventually(
    'a value that was set again is used',
    async () => (await read('shop-stock', `${live}.status}`)) === 'True',
  );
});

test('the value of a new subscription cannot be used in any other subscription', async () => {
  const { cluster } = inbox.world.installation;
  await apply(cluster, [stream('shop', 'fresh'), stream('shop', 'copied')]);
  await waitForAll(cluster, 'catalogstream', 'shop');
  const created = await inbox.ada.post(`${inbox.root}/subscriptions`, {
    catalogEntryPublicId: publicId('CatalogStream', 'shop', 'fresh'),
    ...header(VALUE),
  });
  expect(created).toMatchObject({ status: 201, body: { status: 'Live' } });
  const fresh = subscriptionObjectName('shop', 'ada', 'fresh');
  const valueSealed = await read(fresh, '{.spec.endpoint.headers[0].valueSealed}');
  expect(valueSealed).toMatch(/^s2\./);
  // This subscription is created seconds later, with an endpoint on the same host.
  const headers = [{ name: 'Authorization', valueSealed }];
  await apply(cluster, [subscription('ada', 'shop', 'copied', { url: inbox.receiver.urlOf('thief'), headers })]);
  const reason = '{.status.conditions[?(@.type=="Live")].reason}';
  await eventually(
    'the copy cannot be decrypted',
    async () => (await read('shop-copied', reason)) === 'HeaderNotReadable',
  );
  expect(await read(fresh, reason)).toBe('Live');
});

test('a subscription that replaces one that is being deleted can use its value', async () => {
  const { cluster } = inbox.world.installation;
  const fresh = subscriptionObjectName('shop', 'ada', 'fresh');
  const name = `subscription/${fresh}`;
  const changed = await inbox.ada.put(
    `${inbox.root}/subscriptions/${publicId('Subscription', 'ada', fresh)}`,
    header('Bearer changed'),
  );
  expect(changed.status).toBe(200);
  const keptBy = (finalizers: string) =>
    kubectl(cluster, ['patch', name, '-n', 'ada', '--type=merge', '-p', `{"metadata":{"finalizers":${finalizers}}}`]);
  await keptBy('["example.com/kept"]');
  await kubectl(cluster, ['delete', name, '-n', 'ada', '--wait=false']);
  const replaced = inbox.ada.post(`${inbox.root}/subscriptions`, {
    catalogEntryPublicId: publicId('CatalogStream', 'shop', 'fresh'),
    ...header('Bearer changed'),
  });
  await sleep(500);
  await keptBy('null');
  expect(await replaced).toMatchObject({ status: 201, body: { status: 'Live' } });
});

test('a value that was moved to another header holds events until it is set again', async () => {
  const { cluster } = inbox.world.installation;
  const value = await read(ORDERS, '{.spec.endpoint.headers[0].valueSealed}');
  const { spec, apiVersion, kind } = JSON.parse(await read(ORDERS, '{}')) as Manifest & {
    readonly spec: { readonly endpoint: object };
  };
  const endpoint = { ...spec.endpoint, headers: [{ name: 'X-Other', valueSealed: value }] };
  const moved = { apiVersion, kind, metadata: { name: ORDERS, namespace: 'ada' }, spec: { ...spec, endpoint } };
  const line = ['apply', '--server-side', '--field-manager=sluice-facade', '-f', '-'];
  await kubectl(cluster, line, JSON.stringify(moved));
  const shown = async () => (await inbox.ada.get<{ reason: string }>(path)).body.reason;
  await eventually('the subscription is paused', async () => (await shown()) === 'HeaderNotReadable');
  await inbox.publisher.publish(makeSample('held', 'red', 'held'));
  await inbox.eventIn('held', 'pending');
  expect(inbox.receiver.delivered('ada').has('held')).toBe(false);
  const changed = await inbox.ada.put(path, header('Bearer second'));
  expect(changed.status, JSON.stringify(changed.body)).toBe(200);
  await eventually('the held event is delivered', async () => inbox.receiver.delivered('ada').has('held'));
  expect(inbox.receiver.attempts.findLast(({ id }) => id === 'held')?.headers).toMatchObject({
    authorization: 'Bearer second',
  });
});
