import { setTimeout as delay } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { faultsOf, readInbox } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { createPublisher, makeSample, makeSamples, type Publisher } from '../support/publisher.ts';
import {
  INGRESS_KEY,
  PRODUCER,
  QUEUE,
  RETRY_SOON,
  type Running,
  SUBSCRIPTION,
  settle,
} from '../support/small-world.ts';
import { apply, ingressKey, kubectl, subscription } from '../support/world.ts';

const GROUP_KEYS = ['red', 'green'];

let installed: Installation;
let sluice: Sluice;
let world: Running;
let publisher: Publisher;

beforeAll(async () => {
  installed = await install();
  sluice = await installed.start();
  world = await settle(installed, { partners: ['ada'], groupKeys: GROUP_KEYS });
  publisher = world.publisherOf(sluice);
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
});

const arrived = (id: string, to = 'ada') =>
  eventually(`${id} arrives at ${to}`, async () => world.receiver.delivered(to).has(id), {
    withinMs: 60_000,
    everyMs: 5,
  });

/** Applies the partner's Subscription with other fields, and waits until they hold. */
async function subscribe(endpoint: object, spec: object = {}, live = 'True/Live'): Promise<void> {
  const full = { url: world.receiver.urlOf('ada'), retrySchedule: RETRY_SOON, ...endpoint };
  await apply(installed.cluster, [subscription('ada', PRODUCER, QUEUE, full, spec)]);
  await world.observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', live]);
}

it('signs so that the secret which the partner reads with kubectl verifies it, also while it is rotated', async () => {
  const readSecret = async () => {
    const path = 'jsonpath={.data.secret}';
    const text = await kubectl(installed.cluster, ['get', `secret/${SUBSCRIPTION}-signing`, '-n', 'ada', '-o', path]);
    return Buffer.from(text, 'base64').toString();
  };
  const verify = (secret: string, id: string, body: string) => {
    const attempt = world.receiver.attempts.find(each => each.id === id);
    const { headers = {} } = attempt ?? {};
    const signed = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name => [name, String(headers[name])]);
    return new Webhook(secret).verify(body, Object.fromEntries(signed) as Record<string, string>);
  };
  const first = await readSecret();
  expect(first).toMatch(/^whsec_/);
  await publisher.publish(makeSample('signed.0', 'red', '{"n":0}'));
  await arrived('signed.0');
  expect(verify(first, 'signed.0', '{"n":0}')).toEqual({ n: 0 });
  expect(() => verify(first, 'signed.0', '{"n":1}')).toThrow();

  await subscribe({ secretVersion: 2 });
  const { value: second } = await eventually(
    'the new secret is mirrored',
    async () => {
      const secret = await readSecret();
      return secret !== first && secret;
    },
    { withinMs: 10_000 },
  );
  await publisher.publish(makeSample('signed.1', 'red', '{"n":1}'));
  await arrived('signed.1');
  for (const secret of [first, second]) expect(verify(secret, 'signed.1', '{"n":1}')).toEqual({ n: 1 });
});

it('goes on behind a dead letter, and says so in its counters', async () => {
  const { receiver } = world;
  await subscribe({ secretVersion: 2, retrySchedule: ['100ms', '100ms'] });
  receiver.behave(({ id }) => (id === 'poison' ? 500 : 204));
  await publisher.publish(makeSample('poison', 'red', 'x'));
  await publisher.publish(makeSample('behind', 'red', 'x'));
  await publisher.publish(makeSample('beside', 'green', 'x'));
  await arrived('beside');
  await arrived('behind');
  expect(receiver.attempts.filter(({ id }) => id === 'poison')).toHaveLength(3);
  const inbox = () => readInbox(installed, { producer: PRODUCER, partner: 'ada', name: SUBSCRIPTION });
  await eventually('it is settled', async () => (await inbox()).open === 0, { withinMs: 5_000 });
  expect((await inbox()).counters['dead']).toBe(1);
  receiver.behave(() => 204);
});

it('holds what comes while it is suspended, and resumes in order at another URL', async () => {
  const { receiver } = world;
  await subscribe({ secretVersion: 2 }, { suspended: true }, 'False/Suspended');
  const samples = makeSamples({ groupKeys: GROUP_KEYS, perKey: 50, prefix: 'held.' });
  await publisher.publishAll(samples);
  await delay(1_000);
  expect(receiver.attempts.filter(({ id }) => id.startsWith('held.'))).toEqual([]);
  await subscribe({ secretVersion: 2, url: receiver.urlOf('elsewhere') });
  for (const { id } of samples) await arrived(id, 'elsewhere');
  expect(faultsOf(receiver, 'elsewhere', samples)).toEqual([]);
  await subscribe({ secretVersion: 2 });
});

it('sends what one endpoint cannot take to nobody else late: a slow partner holds up only itself', async () => {
  const { receiver } = world;
  receiver.behave(({ groupKey }) => (groupKey === 'red' ? { status: 204, afterMs: 1_000 } : 204));
  const samples = makeSamples({ groupKeys: GROUP_KEYS, perKey: 5, prefix: 'slow.' });
  const startedMs = performance.now();
  await publisher.publishAll(samples);
  await arrived('slow.green.4');
  const greenMs = performance.now() - startedMs;
  await arrived('slow.red.4');
  const redMs = performance.now() - startedMs;
  console.log(
    `a key of 1 s an event: ${Math.round(redMs)} ms; the other key of the same endpoint: ${Math.round(greenMs)} ms`,
  );
  expect(redMs).toBeGreaterThan(4_000);
  expect(greenMs).toBeLessThan(redMs / 2);
  receiver.behave(() => 204);
});

it('takes two ingress keys at once, and a removed one no more within its 5 s', async () => {
  await apply(installed.cluster, [ingressKey(PRODUCER, 'the-second-key-of-the-shop', 'second')]);
  const other = createPublisher({
    ingressUrl: sluice.ingressUrl,
    producer: PRODUCER,
    queue: QUEUE,
    key: 'the-second-key-of-the-shop',
  });
  const taken = async () => (await other.post(makeSample('by-second', 'red', 'x'))).status === 202;
  const { tookMs } = await eventually('the second key is taken', taken, { withinMs: 10_000 });
  expect((await publisher.post(makeSample('by-first', 'red', 'x'))).status).toBe(202);
  await kubectl(installed.cluster, ['delete', 'secret/ingress', '-n', PRODUCER]);
  const { tookMs: goneMs } = await eventually(
    'the first key is refused',
    async () => (await publisher.post(makeSample('too-late', 'red', 'x'))).status === 401,
    { withinMs: 7_000 },
  );
  expect(await taken()).toBe(true);
  console.log(`a new key: taken after ${Math.round(tookMs)} ms; a removed one: refused after ${Math.round(goneMs)} ms`);
  await apply(installed.cluster, [ingressKey(PRODUCER, INGRESS_KEY)]);
  await other.close();
});
