import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { NAMESPACES } from '../../../src/kube/resource.ts';
import { createRandom } from '../../support/random.ts';
import { eventually } from '../support/deadline.ts';
import { lineOf, list, OURS } from '../support/listed.ts';
import { makeSample, type Publisher } from '../support/publisher.ts';
import { INGRESS_KEY, PRODUCER, QUEUE } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import {
  activation,
  apply,
  block,
  conditionOf,
  ingressKey,
  integration,
  kubectl,
  type Manifest,
  pkg,
  stream,
  subscription,
  tenant,
  waitForAll,
} from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'], controllerManager: true });

async function send(id: string, groupKey = 'key', through = world.publisher): Promise<void> {
  expect((await through.post(makeSample(id, groupKey, id))).status).toBe(202);
}

/** Creates a stream with five events that its only subscription fails to deliver and returns its publisher. */
async function fillFailing(name: string, deletionPolicy: 'Retain' | 'Delete'): Promise<Publisher> {
  const { observer, receiver } = world;
  const retrySchedule = Array.from({ length: 16 }, () => '3s');
  await apply(world.cluster, [
    stream(PRODUCER, name, { deletionPolicy }),
    subscription('ada', PRODUCER, name, { url: receiver.urlOf(name), retrySchedule }),
  ]);
  await observer.until(['Subscription', `${PRODUCER}-${name}`, 'ada', 'Live', 'True/Live']);
  receiver.behave(({ subscription: to }) => (to === name ? 500 : 204));
  const publisher = world.publisherOf(world.sluice, { queue: name });
  for (let n = 0; n < 5; n++) await send(`${name}.${n}`, 'key', publisher);
  return publisher;
}

describe('deleting', () => {
  it('a stream with deletionPolicy Retain refuses new events and is deleted after its stored events were delivered', async () => {
    const { observer, receiver } = world;
    const name = 'retained';
    const through = await fillFailing(name, 'Retain');
    await eventually('there was a first attempt', async () => receiver.attempts.some(({ id }) => id === 'retained.0'));
    await observer.remove('CatalogStream', name, PRODUCER);
    await observer.until(['CatalogStream', name, PRODUCER, 'Ready', 'False/Draining']);
    const refused = await through.post(makeSample('retained.late', 'key', 'x'));
    expect([refused.status, refused.body.code]).toEqual([409, 'stream_closing']);
    await delay(1_000);
    expect(await observer.exists('CatalogStream', name, PRODUCER)).toBe(true);
    receiver.behave(() => 204);
    const tookMs = await observer.untilGone(['CatalogStream', name, PRODUCER]);
    expect([...receiver.delivered(name)]).toEqual(Array.from({ length: 5 }, (_, n) => `retained.${n}`));
    console.log(`Retain: deleted ${Math.round(tookMs)} ms after its endpoint worked again`);
    expect((await through.post(makeSample('retained.gone', 'key', 'x'))).status).toBe(404);
    const left = await world.redis.command('KEYS', `{q:${tenantId(PRODUCER)}:${name}}*`);
    expect((left as string[]).filter(key => !/:(traf|why|id):/.test(key))).toEqual([]);
  });

  it('a stream does not wait for events of a subscription that was deleted', async () => {
    const { observer } = world;
    const name = 'unreceived';
    await fillFailing(name, 'Retain');
    await observer.remove('Subscription', `${PRODUCER}-${name}`, 'ada');
    await observer.untilGone(['Subscription', `${PRODUCER}-${name}`, 'ada']);
    await observer.remove('CatalogStream', name, PRODUCER);
    await observer.untilGone(['CatalogStream', name, PRODUCER]);
  });

  it('a stream with deletionPolicy Delete is deleted immediately, along with its events', async () => {
    const { observer, receiver } = world;
    const name = 'dropped';
    const through = await fillFailing(name, 'Delete');
    const backlog = () =>
      kubectl(world.cluster, `get wsub ${PRODUCER}-${name} -n ada -o jsonpath={.status.delivery.backlog}`.split(' '));
    await eventually('the backlog is shown', async () => (await backlog()) === '1+');
    await observer.remove('CatalogStream', name, PRODUCER);
    // The events would fail for longer than this.
    const tookMs = await observer.untilGone(['CatalogStream', name, PRODUCER]);
    console.log(`Delete: deleted after ${Math.round(tookMs)} ms`);
    await observer.until(['Subscription', `${PRODUCER}-${name}`, 'ada', 'Ready', 'Unknown/WaitingForStream']);
    expect(await backlog()).toBe('0');

    // A new stream with the same name has an empty queue, which accepts events and does not contain the old events.
    receiver.behave(() => 204);
    receiver.clear();
    await observer.apply(stream(PRODUCER, name, { deletionPolicy: 'Delete' }));
    await observer.until(['Subscription', `${PRODUCER}-${name}`, 'ada', 'Live', 'True/Live']);
    await send('dropped.again', 'key', through);
    await world.receiver.arrival('dropped.again', name);
    await delay(1_500);
    expect(receiver.attempts.map(({ id }) => id)).toEqual(['dropped.again']);
  });

  /** A complete tenant and its partner, including all kinds. */
  async function fullWorld(producer: string, partner: string): Promise<string[]> {
    await apply(world.cluster, [
      ...tenant(producer),
      ...tenant(partner),
      stream(producer, QUEUE),
      ingressKey(producer, INGRESS_KEY),
      pkg(producer, 'everything', [QUEUE]),
      integration(producer, partner),
      activation(producer, partner, 'key'),
      block(producer, 'blocked', { integration: partner, target: { kind: 'Package', name: 'everything' } }),
      subscription(partner, producer, QUEUE, { url: world.receiver.urlOf(partner) }),
    ]);
    await waitForAll(world.cluster, 'catalogstream', producer);
    await waitForAll(world.cluster, 'subscription', partner);
    return [
      `catalogstream/${QUEUE} -n ${producer}`,
      `package/everything -n ${producer}`,
      `integration/${partner} -n ${producer}`,
      `activation/${activation(producer, partner, 'key').metadata.name} -n ${producer}`,
      `block/blocked -n ${producer}`,
      `subscription/${producer}-${QUEUE} -n ${partner}`,
      `workspace/${producer}`,
      `workspace/${partner}`,
      `account/${producer}`,
      `account/${partner}`,
      `namespace/${producer}`,
      `namespace/${partner}`,
    ];
  }

  async function leftOf(...names: string[]): Promise<string[]> {
    const all = await list(world.cluster, [...OURS, NAMESPACES]);
    return all.map(lineOf).filter(line => names.some(name => line.includes(name)));
  }

  it.each([1, 2, 3, 4])('objects and namespaces can be deleted in any order (order %i)', async seed => {
    const [producer, partner] = [`prod${seed}`, `part${seed}`];
    const objects = await fullWorld(producer, partner);
    const random = createRandom(seed);
    const shuffled = objects
      .map(object => ({ object, at: random() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ object }) => object);
    const startedMs = performance.now();
    for (const object of shuffled) {
      await world.cluster.kubectl(['delete', ...object.split(' '), '--wait=false', '--ignore-not-found']);
    }
    // If a namespace was deleted before its Workspace, the controller has created the namespace again.
    const workspaces = async () => (await leftOf(`Workspace /${producer}`, `Workspace /${partner}`)).length;
    await eventually('the Workspaces are deleted', async () => (await workspaces()) === 0, { everyMs: 500 });
    await kubectl(world.cluster, ['delete', 'namespace', producer, partner, '--wait=false', '--ignore-not-found']);
    await eventually('all objects are deleted', async () => (await leftOf(producer, partner)).length === 0, {
      everyMs: 500,
    }).catch(async (error: unknown) => {
      throw new Error(`left after ${shuffled.join(', ')}:\n${(await leftOf(producer, partner)).join('\n')}`, {
        cause: error,
      });
    });
    console.log(`order ${seed}: all objects deleted after ${Math.round(performance.now() - startedMs)} ms`);
    const keys = (await world.redis.command('KEYS', `*${tenantId(producer)}*`)) as string[];
    // The remaining data has its own expiry (traffic, ids), or shows that the tenant existed.
    console.log(`left of ${producer} in Redis: ${keys.map(key => key.replace(/.*\}:/, '')).join(', ')}`);
    expect(keys.filter(key => /:(m|b):|:behind$|:keys$|:subs:/.test(key))).toEqual([]);
  });

  it('an account is kept while a workspace references it, and deleted along with the last workspace', async () => {
    const { observer } = world;
    const [first, second] = ['payer-1', 'payer-2'];
    const [, , other] = tenant(second);
    await apply(world.cluster, [...tenant(first), { ...(other as Manifest), spec: { account: first } }]);
    await observer.until(['Workspace', second, undefined, 'Ready', 'True/NamespaceReady']);
    await observer.remove('Account', first);
    await observer.until(['Account', first, undefined, 'Ready', 'False/StillInUse']);
    await observer.remove('Workspace', first);
    await observer.untilGone(['Workspace', first, undefined]);
    expect(await observer.exists('Account', first)).toBe(true);
    await observer.remove('Workspace', second);
    await observer.untilGone(['Account', first, undefined]);
    await observer.untilEvent(`Account/${first} StillInUse`);
  });

  it('every finalizer is removed in time while Redis is not available', async () => {
    const { cluster, redis } = world;
    await fullWorld('prod9', 'part9');
    await redis.kill('SIGKILL');
    const startedMs = performance.now();
    await kubectl(cluster, ['delete', 'namespace', 'prod9', 'part9', '--wait=false']);
    await kubectl(cluster, ['delete', 'workspace', 'prod9', 'part9', '--wait=false']);
    await delay(5_000);
    console.log(`Redis away: the stream says ${await conditionOf(cluster, `catalogstream/${QUEUE}`, 'prod9')}`);
    await eventually(
      'the objects are deleted',
      async () => (await leftOf('prod9', 'part9')).filter(line => !line.startsWith('Account ')).length === 0,
      { withinMs: 240_000, everyMs: 1_000 },
    ).catch(async (error: unknown) => {
      throw new Error(`left with Redis away:\n${(await leftOf('prod9', 'part9')).join('\n')}`, { cause: error });
    });
    const tookMs = performance.now() - startedMs;
    console.log(`without Redis: all objects deleted after ${Math.round(tookMs)} ms`);
    // Objects in the namespaces were deleted along with the namespaces.
    await world.observer.untilEvent('Workspace/prod9 FinalizerRemovedWithoutRedis');
    await redis.restart();
    await world.publisher.publish(makeSample('after-all.0', 'key', 'x'));
    await world.receiver.arrival('after-all.0', 'ada');
  });
});
