import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHeaderSeals } from '../../../src/core/delivery/header-seal.ts';
import { keyRingOf } from '../../../src/core/delivery/key-ring.ts';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { subscriptionObjectName } from '../../../src/core/ids/object-names.ts';
import type { Sluice } from '../../support/sluice.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { type FacadeWorld, openFacadeWorld, ownedTenant } from '../rest/support/facade-world.ts';
import { eventually } from '../support/deadline.ts';
import { createPublisher, makeSample, type Publisher } from '../support/publisher.ts';
import { type Receiver, type Recorded, startReceiver } from '../support/receiver.ts';
import type { RestClient } from '../support/rest-client.ts';
import { startLoad } from '../support/steady-load.ts';
import { activation, apply, ingressKey, integration, kubectl, stream, waitForAll } from '../support/world.ts';

const INGRESS_KEY = 'an-ingress-key-of-the-shop';
const VALUE = 'Bearer a-value-given-over-REST';
const GROUP_KEYS = Array.from({ length: 10 }, (_, n) => `key-${n}`);
const PER_SECOND = 200;
const ROOT = `/waas/integrations/${publicId('Integration', 'shop', 'ada')}`;
const SHOP = tenantId('shop');

/** The folders containing the root keys: for all roles, and for a dispatcher that receives new keys later. */
let folders: readonly [TemporaryFolder, TemporaryFolder];
let world: FacadeWorld;
let receiver: Receiver;
let publisher: Publisher;
let controller: Sluice;
let processes: readonly Sluice[];
let ada: RestClient;
let shop: RestClient;

const addKey = (folder: TemporaryFolder, name: string, key: Uint8Array) => writeFile(join(folder.path, name), key);
const start = (role: 'controller' | 'facade' | 'ingress' | 'dispatcher', folder: TemporaryFolder) =>
  world.start({ role, env: { SLUICE_ROOT_KEY_FILE: join(folder.path, 'root.key') } });

beforeAll(async () => {
  folders = [await temporaryFolder('root-keys'), await temporaryFolder('root-keys-late')];
  const first = randomBytes(32);
  for (const folder of folders) await addKey(folder, 'root.key', first);
  [world, receiver] = await Promise.all([openFacadeWorld(), startReceiver()]);
  const [early, late] = folders;
  const [leader, facade, ingress, ...dispatchers] = await Promise.all([
    start('controller', early),
    start('facade', early),
    start('ingress', early),
    start('dispatcher', early),
    start('dispatcher', late),
  ]);
  controller = leader;
  processes = [leader, facade, ingress, ...dispatchers];
  const { cluster } = world.installation;
  await apply(cluster, [
    ...ownedTenant(world.issuer, 'shop', 'shop'),
    ...ownedTenant(world.issuer, 'ada', 'ada'),
    ...ownedTenant(world.issuer, 'eve', 'eve'),
    stream('shop', 'orders'),
    stream('shop', 'visits'),
    ingressKey('shop', INGRESS_KEY),
    integration('shop', 'ada'),
    ...GROUP_KEYS.map(groupKey => activation('shop', 'ada', groupKey)),
  ]);
  await waitForAll(cluster, 'catalogstream', 'shop');
  await waitForAll(cluster, 'activation', 'shop', 'Effective');
  [ada, shop] = await Promise.all([world.as(facade, 'ada'), world.as(facade, 'shop')]);
  publisher = createPublisher({ ingressUrl: ingress.ingressUrl, producer: 'shop', queue: 'orders', key: INGRESS_KEY });
});
afterAll(async () => {
  await publisher?.close();
  await receiver?.close();
  await world?.stop();
  for (const folder of folders ?? []) await folder.remove();
});

const read = (what: string, namespace: string, path: string) =>
  kubectl(world.installation.cluster, ['get', what, '-n', namespace, '-o', `jsonpath=${path}`]);
const isFirst = (key: string) => controller.metric('sluice_controller_root_key_first', { key });
const usesOf = (key: string, use: string) => controller.metric('sluice_controller_root_key_uses', { key, use });

async function subscribe(name: string): Promise<string> {
  const { status, body } = await ada.post<{ publicId: string }>(`${ROOT}/subscriptions`, {
    catalogEntryPublicId: publicId('CatalogStream', 'shop', name),
    endpoint: { url: receiver.urlOf(name), headers: [{ name: 'Authorization', value: VALUE }] },
  });
  expect(status).toBe(201);
  return body.publicId;
}

async function secretOf(subscription: string): Promise<string> {
  const { status, body } = await ada.get<{ secret: string }>(`${ROOT}/subscriptions/${subscription}/secret`);
  expect(status).toBe(200);
  return body.secret;
}

/** Returns whether a partner with this secret accepts the delivery. */
function isSignedWith(secret: string, { headers, id }: Recorded, body: Buffer): boolean {
  const at = new Date(Number(headers['webhook-timestamp']) * 1_000);
  return String(headers['webhook-signature'])
    .split(' ')
    .includes(new Webhook(secret).sign(id, at, body.toString()));
}

async function invite(
  email = 'eve@partner.example',
): Promise<{ readonly status: number; readonly body: { readonly publicId: string } }> {
  return shop.post<{ publicId: string }>('/waas/integrations', { producerTenantPublicId: SHOP, email });
}

test('the root key is rotated twice under load without a restart, and partners are not affected', async () => {
  const orders = await subscribe('orders');
  const known = [await secretOf(orders)];
  const invited = await invite();
  expect(invited.status).toBe(201);
  const { body: entry } = await shop.get<{ name: string }>(
    `/waas/producer/${SHOP}/integrations/${invited.body.publicId}`,
  );
  const tokenOf = async () =>
    Buffer.from(await read(`secret/${entry.name}-invitation`, 'shop', '{.data.token}'), 'base64');
  const written = async () => ((await tokenOf()).length > 0 ? tokenOf() : undefined);
  const { value: token } = await eventually('the token is written', written);
  const pids = processes.map(({ pid }) => pid);
  const load = startLoad(
    () => publisher,
    GROUP_KEYS.map(groupKey => ({ queue: 'orders', groupKey })),
    PER_SECOND,
  );

  // One dispatcher does not have the new key yet, so the new key must not be used.
  const [early, late] = folders;
  const second = randomBytes(32);
  await addKey(early, 'root.key.2', second);
  const waits = () => controller.metric('sluice_controller_root_key_missing_replicas');
  await eventually('one replica is missing the key', async () => (await waits()) === 1);
  expect(await isFirst('root.key')).toBe(1);
  await addKey(late, 'root.key.2', second);
  // A leader changes the first key at least 35 seconds after the start of its term.
  await eventually('the second key is the first', async () => (await isFirst('root.key.2')) === 1);
  await eventually('headers are sealed with the second key', async () => (await usesOf('root.key', 'header')) === 0);

  // The partner's secret remains valid, and new secrets are derived from the new key.
  expect(await secretOf(orders)).toBe(known[0]);
  expect(await usesOf('root.key', 'signing')).toBe(1);
  const visits = await subscribe('visits');
  const keyOf = (name: string) =>
    read(`subscription/${subscriptionObjectName('shop', 'ada', name)}`, 'ada', '{.status.signing.key}');
  expect(await keyOf('visits')).not.toBe(await keyOf('orders'));
  const rotated = await ada.post<{ secret: string; previous: { secret: string } }>(
    `${ROOT}/subscriptions/${orders}/rotate`,
    {},
  );
  expect(rotated).toMatchObject({ status: 200, body: { previous: { secret: known[0] } } });
  known.push(rotated.body.secret);
  expect(await secretOf(orders)).toBe(known[1]);

  const third = randomBytes(32);
  for (const folder of [late, early]) await addKey(folder, 'root.key.3', third);
  await eventually('the third key is the first', async () => (await isFirst('root.key.3')) === 1);
  await eventually('headers are sealed with the third key', async () => (await usesOf('root.key.3', 'header')) === 2);
  expect(await secretOf(orders)).toBe(known[1]);
  expect(await usesOf('root.key.2', 'signing')).toBe(2);

  await load.stop();
  expect(load.events.length).toBeGreaterThan(100);
  const delivered = () => receiver.delivered('orders').size;
  await eventually('all events are delivered', async () => delivered() === load.events.length);
  const bodies = new Map(load.events.map(({ sample }) => [sample.id, sample.body]));
  const unverified = receiver.attempts.filter(
    each => !known.some(secret => isSignedWith(secret, each, bodies.get(each.id) as Buffer)),
  );
  expect(unverified).toEqual([]);
  expect(receiver.attempts.filter(({ headers }) => headers['authorization'] !== VALUE)).toEqual([]);
  const [before, after] = [receiver.attempts.at(0), receiver.attempts.at(-1)] as [Recorded, Recorded];
  const [old = '', current = ''] = known;
  expect(isSignedWith(old, before, bodies.get(before.id) as Buffer)).toBe(true);
  expect(isSignedWith(current, before, bodies.get(before.id) as Buffer)).toBe(false);
  expect(isSignedWith(current, after, bodies.get(after.id) as Buffer)).toBe(true);

  // The Integration's name is still derived from the oldest key, and the invitation stays valid.
  expect(await invite()).toMatchObject({ status: 200, body: { publicId: invited.body.publicId } });
  const eve = await world.as(processes[1] as Sluice, 'eve');
  const accountPublicId = publicId('Account', '', 'eve');
  const accepted = await eve.post('/waas/invitations/accept', { token: token.toString(), accountPublicId });
  expect(accepted.status).toBe(200);
  expect(await secretOf(visits)).toMatch(/^whsec_/);
  expect(processes.map(({ pid, running }) => (running() ? pid : 0))).toEqual(pids);
}, 300_000);

/** Returns the value, encrypted like by an attacker who knows the oldest root key and can read the Subscription. */
async function forge(subscription: string, name: string, value: string): Promise<string> {
  const secret = await readFile(join(folders[0].path, 'root.key'));
  const object = `subscription/${subscriptionObjectName('shop', 'ada', name)}`;
  const salt = await read(object, 'ada', '{.status.signing.salt}');
  const url = await read(object, 'ada', '{.spec.endpoint.url}');
  const seals = createHeaderSeals(keyRingOf(secret), Date.now);
  return seals.seal({ subscription, salt, createdMs: undefined, url }, 'Authorization', value);
}

test('the oldest root key is retired without a restart, and is then only used for object names', async () => {
  const pids = processes.map(({ pid }) => pid);
  const orders = publicId('Subscription', 'ada', subscriptionObjectName('shop', 'ada', 'orders'));
  const visits = publicId('Subscription', 'ada', subscriptionObjectName('shop', 'ada', 'visits'));
  const path = `${ROOT}/subscriptions/${orders}`;
  const rotated = await ada.post<{ secret: string }>(`${path}/rotate`, { secretVersion: 3 });
  expect(rotated.status).toBe(200);
  await eventually('nothing depends on the key', async () => (await usesOf('root.key', 'signing')) === 0);
  const invited = await invite('mallory@partner.example');
  expect(invited.status).toBe(201);

  for (const { path: folder } of folders) await writeFile(join(folder, 'root.key.retired'), '');
  const [, , ingress, ...dispatchers] = processes;
  for (const each of processes.filter(one => one !== ingress)) {
    const hasRetired = async () => (await each.logLines()).some(({ retired }) => retired === 'root.key');
    await eventually('the key is retired', hasRetired);
  }
  expect(dispatchers).toHaveLength(2);
  expect(await usesOf('missing', 'signing')).toBe(0);
  expect(await usesOf('missing', 'header')).toBe(0);

  // Names and secrets do not change, and events are delivered.
  const again = { status: 200, body: { publicId: invited.body.publicId } };
  expect(await invite('MALLORY@partner.example')).toMatchObject(again);
  expect(await secretOf(orders)).toBe(rotated.body.secret);
  const sample = makeSample('retired', GROUP_KEYS[0] as string, 'retired');
  await publisher.publish(sample);
  await eventually('the event is delivered', async () => receiver.delivered('orders').has(sample.id));
  const arrived = receiver.attempts.findLast(({ id }) => id === sample.id) as Recorded;
  expect(isSignedWith(rotated.body.secret, arrived, Buffer.from(sample.body))).toBe(true);
  expect(arrived.headers['authorization']).toBe(VALUE);

  // Values encrypted with this key are refused.
  const headers = [{ name: 'Authorization', valueSealed: await forge(visits, 'visits', 'Bearer forged') }];
  const { cluster } = world.installation;
  const object = `subscription/${subscriptionObjectName('shop', 'ada', 'visits')}`;
  const patch = JSON.stringify({ spec: { endpoint: { headers } } });
  await kubectl(cluster, ['patch', object, '-n', 'ada', '--type=merge', `--patch=${patch}`]);
  const reason = () => read(object, 'ada', '{.status.conditions[?(@.type=="Live")].reason}');
  await eventually('the value cannot be decrypted', async () => (await reason()) === 'HeaderNotReadable');
  await eventually('the value is counted', async () => (await usesOf('missing', 'header')) === 1);
  expect(processes.map(({ pid, running }) => (running() ? pid : 0))).toEqual(pids);
}, 240_000);
