import { setTimeout as delay } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { faultsOf, readInbox } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { createPublisher, makeSample, makeSamples } from '../support/publisher.ts';
import { INGRESS_KEY, PRODUCER, QUEUE, RETRY_SOON, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { apply, ingressKey, kubectl, subscription } from '../support/world.ts';

const GROUP_KEYS = ['red', 'green'];

const world = useSmallWorld({ partners: ['ada'], groupKeys: GROUP_KEYS });

/** Applies the partner's Subscription with different fields and waits until they are in force. */
async function subscribe(endpoint: object, spec: object = {}, live = 'True/Live'): Promise<void> {
  const full = { url: world.receiver.urlOf('ada'), retrySchedule: RETRY_SOON, ...endpoint };
  await apply(world.cluster, [subscription('ada', PRODUCER, QUEUE, full, spec)]);
  await world.observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', live]);
}

it('signs with the secret that the partner reads with kubectl, even during a rotation', async () => {
  const readSecret = async () => {
    const path = 'jsonpath={.data.secret}';
    const text = await kubectl(world.cluster, ['get', `secret/${SUBSCRIPTION}-signing`, '-n', 'ada', '-o', path]);
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
  await world.publisher.publish(makeSample('signed.0', 'red', '{"n":0}'));
  await world.receiver.arrival('signed.0', 'ada', 60_000);
  expect(verify(first, 'signed.0', '{"n":0}')).toEqual({ n: 0 });
  expect(() => verify(first, 'signed.0', '{"n":1}')).toThrow();

  await subscribe({ secretVersion: 2 });
  const { value: second } = await eventually('the new secret is mirrored', async () => {
    const secret = await readSecret();
    return secret !== first && secret;
  });
  await world.publisher.publish(makeSample('signed.1', 'red', '{"n":1}'));
  await world.receiver.arrival('signed.1', 'ada', 60_000);
  for (const secret of [first, second]) expect(verify(secret, 'signed.1', '{"n":1}')).toEqual({ n: 1 });
});

it('continues after a dead letter and counts it', async () => {
  const { receiver } = world;
  await subscribe({ secretVersion: 2, retrySchedule: ['100ms', '100ms'] });
  receiver.behave(({ id }) => (id === 'poison' ? 500 : 204));
  await world.publisher.publish(makeSample('poison', 'red', 'x'));
  await world.publisher.publish(makeSample('behind', 'red', 'x'));
  await world.publisher.publish(makeSample('beside', 'green', 'x'));
  await world.receiver.arrival('beside', 'ada', 60_000);
  await world.receiver.arrival('behind', 'ada', 60_000);
  expect(receiver.attempts.filter(({ id }) => id === 'poison')).toHaveLength(3);
  const inbox = () => readInbox(world, { producer: PRODUCER, partner: 'ada', name: SUBSCRIPTION });
  await eventually('the event is a dead letter', async () => (await inbox()).open === 0);
  expect((await inbox()).counters['dead']).toBe(1);
  receiver.behave(() => 204);
});

it('holds events while it is suspended, and resumes in order at another URL', async () => {
  const { receiver } = world;
  await subscribe({ secretVersion: 2 }, { suspended: true }, 'False/Suspended');
  const samples = makeSamples({ groupKeys: GROUP_KEYS, perKey: 50, prefix: 'held.' });
  await world.publisher.publishAll(samples);
  await delay(1_000);
  expect(receiver.attempts.filter(({ id }) => id.startsWith('held.'))).toEqual([]);
  await subscribe({ secretVersion: 2, url: receiver.urlOf('elsewhere') });
  for (const { id } of samples) await world.receiver.arrival(id, 'elsewhere', 60_000);
  expect(faultsOf(receiver, 'elsewhere', samples)).toEqual([]);
  await subscribe({ secretVersion: 2 });
});

it('does not delay other endpoints if a partner is slow', async () => {
  const { receiver } = world;
  const isOver = Promise.withResolvers<void>();
  receiver.behave(({ groupKey }) => (groupKey === 'red' ? { status: 204, after: isOver.promise } : 204));
  const samples = makeSamples({ groupKeys: GROUP_KEYS, perKey: 5, prefix: 'slow.' });
  await world.publisher.publishAll(samples);
  await world.receiver.arrival('slow.green.4', 'ada');
  expect([...receiver.delivered('ada')].filter(id => id.startsWith('slow.red'))).toEqual([]);
  isOver.resolve();
  await world.receiver.arrival('slow.red.4', 'ada');
  receiver.behave(() => 204);
});

it('accepts two ingress keys at the same time, and refuses a removed key within 5 s', async () => {
  await apply(world.cluster, [ingressKey(PRODUCER, 'the-second-key-of-the-shop', 'second')]);
  const other = createPublisher({
    ingressUrl: world.sluice.ingressUrl,
    producer: PRODUCER,
    queue: QUEUE,
    key: 'the-second-key-of-the-shop',
  });
  const taken = async () => (await other.post(makeSample('by-second', 'red', 'x'))).status === 202;
  const { tookMs } = await eventually('the second key is accepted', taken);
  expect((await world.publisher.post(makeSample('by-first', 'red', 'x'))).status).toBe(202);
  await kubectl(world.cluster, ['delete', 'secret/ingress', '-n', PRODUCER]);
  const { tookMs: goneMs } = await eventually(
    'the first key is refused',
    async () => (await world.publisher.post(makeSample('too-late', 'red', 'x'))).status === 401,
  );
  expect(await taken()).toBe(true);
  console.log(`new key: accepted after ${Math.round(tookMs)} ms; removed key: refused after ${Math.round(goneMs)} ms`);
  await apply(world.cluster, [ingressKey(PRODUCER, INGRESS_KEY)]);
  await other.close();
});
