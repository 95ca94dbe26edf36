import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import type { Sluice } from '../../support/sluice.ts';
import { type FacadeWorld, openFacadeWorld, ownedTenant } from '../rest/support/facade-world.ts';
import { readInbox } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { type Observer, observe } from '../support/observer.ts';
import { createPublisher, makeSample, type Publisher } from '../support/publisher.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import type { RestClient } from '../support/rest-client.ts';
import {
  activation,
  apply,
  ingressKey,
  integration,
  kubectl,
  type Manifest,
  stream,
  subscription,
} from '../support/world.ts';

// All tests use roles with the shipped permissions.
const FEED = 'shop-orders';
const SECRET = 'orders-endpoint';
/** For longer than it takes to notice a changed Secret, even on a slow machine. */
const RETRY = Array.from({ length: 16 }, () => '2s');
/** The values of headers, which must only be found in their Secret. */
const VALUES: string[] = [];

let world: FacadeWorld;
let processes: Sluice[];
let receiver: Receiver;
let observer: Observer;
let publisher: Publisher;
let ada: RestClient;

beforeAll(async () => {
  world = await openFacadeWorld();
  const { cluster } = world.installation;
  await applyPermissions(cluster);
  const [controller, facade] = await Promise.all(
    ['sluice-controller', 'sluice-facade'].map(name => kubeconfigOf(cluster, name)),
  );
  const log = { env: { SLUICE_LOG_LEVEL: 'debug' } };
  // Without an issuer, `all` does not run a facade, so this calls its operations with the permissions of the
  // controller.
  processes = await Promise.all([
    world.installation.start({ kubeconfig: controller as string, ...log }),
    world.start({ role: 'facade', kubeconfig: facade as string, ...log }),
  ]);
  receiver = await startReceiver();
  observer = observe(cluster.kubeconfig);
  const header = (name: string, key: string) => ({
    name,
    valueFrom: { secretKeyRef: { name: SECRET, key } },
  });
  await apply(cluster, [
    ...ownedTenant(world.issuer, 'shop', 'owner'),
    ...ownedTenant(world.issuer, 'ada', 'ada'),
    stream('shop', 'orders'),
    ingressKey('shop', 'an-ingress-key-of-the-shop'),
    integration('shop', 'ada'),
    activation('shop', 'ada', 'red'),
    subscription('ada', 'shop', 'orders', {
      url: receiver.urlOf('ada'),
      retrySchedule: RETRY,
      headers: [{ name: 'x-team', value: 'orders' }, header('Authorization', 'token'), header('X-Account', 'account')],
    }),
  ]);
  await observer.until([
    'Activation',
    activation('shop', 'ada', 'red').metadata.name,
    'shop',
    'Effective',
    'True/Routing',
  ]);
  const { ingressUrl } = processes[0] as Sluice;
  publisher = createPublisher({ ingressUrl, producer: 'shop', queue: 'orders', key: 'an-ingress-key-of-the-shop' });
  ada = await world.as(processes[1] as Sluice, 'ada');
});

afterAll(async () => {
  await publisher?.close();
  await receiver?.close();
  await observer?.close();
  await world?.stop();
});

const secret = (fields: Readonly<Record<string, string>>, more: object = {}): Manifest => {
  VALUES.push(...Object.values(fields).map(value => value.trim()));
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: SECRET, namespace: 'ada' },
    stringData: fields,
    ...more,
  };
};
const put = (fields: Readonly<Record<string, string>>) => apply(world.installation.cluster, [secret(fields)]);
const live = (is: string) => observer.until(['Subscription', FEED, 'ada', 'Live', is]);
const read = (path: string) =>
  kubectl(world.installation.cluster, ['get', `subscription/${FEED}`, '-n', 'ada', '-o', `jsonpath=${path}`]);
const message = () => read('{.status.conditions[?(@.type=="Live")].message}');
const publish = (id: string) => publisher.publish(makeSample(id, 'red', id));
const headersOf = (id: string) => receiver.attempts.findLast(attempt => attempt.id === id)?.headers;

/** Returns the time until the event was delivered, in milliseconds. */
async function arrived(id: string): Promise<number> {
  return (await eventually(`${id} is delivered`, async () => receiver.delivered('ada').has(id))).tookMs;
}

/** Waits until the event is in the inbox after the existing events, and expects that there was no attempt. */
async function held(id: string, open: number): Promise<void> {
  const inbox = () => readInbox(world.installation, { producer: 'shop', partner: 'ada', name: FEED });
  await eventually(`${id} is in the inbox`, async () => (await inbox()).open === open);
  expect(headersOf(id)).toBeUndefined();
}

it('waits for the Secret, stores the events, and continues when the Secret exists', async () => {
  await live('False/WaitingForSecret');
  expect(await message()).toContain(`(header Authorization, Secret ${SECRET}, key token)`);
  await publish('before the Secret');
  await held('before the Secret', 1);

  await put({ token: 'Bearer first-value-9f2c\n' });
  await eventually('the status reports the other key', async () =>
    (await message()).includes('does not contain this key'),
  );
  expect(await message()).toContain(`(header X-Account, Secret ${SECRET}, key account)`);
  await held('before the Secret', 1);

  await put({ token: 'Bearer first-value-9f2c\n', account: 'account-1f77' });
  const liveMs = await live('True/Live');
  const arrivedMs = await arrived('before the Secret');
  expect(headersOf('before the Secret')).toMatchObject({
    authorization: 'Bearer first-value-9f2c',
    'x-account': 'account-1f77',
    'x-team': 'orders',
  });
  console.log(`Secret created: live after ${Math.round(liveMs)} ms, delivered ${Math.round(arrivedMs)} ms later`);
});

it('uses a changed value within seconds, including for retries', async () => {
  receiver.behave(({ headers }) => (headers.authorization === 'Bearer second-value-4d1e' ? 204 : 401));
  await publish('rotated');
  await eventually('the old value is refused', async () => headersOf('rotated') !== undefined);
  await put({ token: 'Bearer second-value-4d1e', account: 'account-1f77' });
  const tookMs = await arrived('rotated');
  console.log(`value changed: accepted after ${Math.round(tookMs)} ms`);
  receiver.behave(() => 204);
  expect(await read('{.status.conditions[?(@.type=="Live")].status}')).toBe('True');
});

it('refuses an invalid header value without printing it', async () => {
  await put({ token: 'Bearer third\r\nx-injected: value-77aa', account: 'account-1f77' });
  await live('False/EndpointRefused');
  expect(await message()).toMatch(/visible ASCII.*\(header Authorization, Secret orders-endpoint, key token\)/);
  await publish('while it is refused');
  await held('while it is refused', 1);
  await put({ token: 'Bearer fourth-value-8b3a', account: 'account-1f77' });
  await live('True/Live');
  await arrived('while it is refused');
  expect(headersOf('while it is refused')).toMatchObject({ authorization: 'Bearer fourth-value-8b3a' });
  expect(headersOf('while it is refused')).not.toHaveProperty('x-injected');
});

it('does not use the values of a deleted Secret, or Secrets with credentials of Sluice', async () => {
  const { cluster } = world.installation;
  await kubectl(cluster, ['delete', 'secret', SECRET, '-n', 'ada']);
  await live('False/WaitingForSecret');
  await publish('while it is gone');
  await held('while it is gone', 1);
  await apply(cluster, [
    secret({ key: 'k', token: 'Bearer ingress-key-55', account: 'x-a' }, { type: 'sluice.dev/ingress-key' }),
  ]);
  await publish('while it is a key');
  await held('while it is a key', 2);
  expect(await read('{.status.conditions[?(@.type=="Live")].reason}')).toBe('WaitingForSecret');
  await kubectl(cluster, ['delete', 'secret', SECRET, '-n', 'ada']);
  await put({ token: 'Bearer fifth-value-c0de', account: 'account-1f77' });
  await live('True/Live');
  await arrived('while it is a key');
  expect(headersOf('while it is gone')).toMatchObject({ authorization: 'Bearer fifth-value-c0de' });
});

it('returns the names of the headers over REST, and does not accept a reference to a Secret', async () => {
  const subscriptions = `/waas/integrations/${publicId('Integration', 'shop', 'ada')}/subscriptions`;
  const path = `${subscriptions}/${publicId('Subscription', 'ada', FEED)}`;
  const isLive = async () => {
    const reply = await ada.get<{ status: string }>(path);
    return reply.body.status === 'Live' && reply;
  };
  const { value: shown } = await eventually('the facade knows that it is live', isLive);
  expect(shown).toMatchObject({
    status: 200,
    body: {
      status: 'Live',
      endpoint: { headers: [{ name: 'x-team' }, { name: 'Authorization' }, { name: 'X-Account' }] },
    },
  });
  const valueFrom = { secretKeyRef: { name: SECRET, key: 'token' } };
  const wish = { endpoint: { url: 'https://elsewhere.example/', headers: [{ name: 'Authorization', valueFrom }] } };
  expect(await ada.put(path, wish)).toMatchObject({ status: 422 });
  // REST cannot remove a value set by kubectl either, because the Secret would be sent to a different address.
  const other = await ada.put(path, { endpoint: { url: 'https://elsewhere.example/' } });
  expect(other).toMatchObject({ status: 409, body: { code: 'field_managed' } });
  await kubectl(world.installation.cluster, ['delete', 'secret', SECRET, '-n', 'ada']);
  const paused = async () => (await ada.get<{ status: string; reason: string }>(path)).body;
  await eventually('the subscription is paused', async () => (await paused()).reason === 'WaitingForSecret');
  expect(await paused()).toMatchObject({ status: 'Paused' });
});

it('does not write any value to Redis, statuses, Events, or logs', async () => {
  const { cluster, redis } = world.installation;
  const [, folder] = (await redis.command('CONFIG', 'GET', 'dir')) as [string, string];
  const files = await readdir(join(folder, 'appendonlydir'));
  const written = await Promise.all(files.map(file => readFile(join(folder, 'appendonlydir', file), 'latin1')));
  const logs = await Promise.all(processes.map(({ log }) => readFile(log, 'utf8')));
  const objects = await kubectl(cluster, ['get', 'waas,events', '-A', '-o', 'json']);
  const places = { redis: written.join(), logs: logs.join(), objects };
  expect(VALUES.length).toBeGreaterThan(8);
  for (const [place, text] of Object.entries(places)) {
    expect(text.length, place).toBeGreaterThan(1_000);
    for (const value of VALUES.filter(each => each.length > 3)) {
      expect(text.includes(value), `${value} in ${place}`).toBe(false);
      expect(text.includes(Buffer.from(value).toString('base64').slice(0, -4)), `${value} in ${place}`).toBe(false);
    }
  }
  expect(places.logs).not.toMatch(/forbidden|"(?:status|code)":403\b/i);
});
