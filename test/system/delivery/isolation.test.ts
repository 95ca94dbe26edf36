import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { faultsOf, readInbox, readSeries } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { type Observer, observe } from '../support/observer.ts';
import { countStatuses, createPublisher, makeSample, type Publisher, type Sample } from '../support/publisher.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import {
  endpointOf,
  feed,
  feedOf,
  GROUP_KEYS,
  INTEGRATION,
  keyOf,
  lookSettled,
  type Outside,
  openOutside,
  PACKAGE,
  QUEUES,
  type Twin,
  twinManifests,
} from '../support/twins.ts';
import { activation, apply, block, integration, kubectl, pkg, stream, waitForAll } from '../support/world.ts';

const NORTH: Twin = { producer: 'north', partner: 'anna' };
const SOUTH: Twin = { producer: 'south', partner: 'bert' };
const TWINS = [NORTH, SOUTH];
const PER_KEY = 10;

let installed: Installation;
let sluice: Sluice;
let receiver: Receiver;
let observer: Observer;
let notNorth: Outside;
/** The senders, by `producer/queue`. */
const publishers = new Map<string, Publisher>();

beforeAll(async () => {
  installed = await install();
  const { cluster } = installed;
  receiver = await startReceiver();
  observer = observe(cluster.kubeconfig);
  sluice = await installed.start();
  await apply(
    cluster,
    TWINS.flatMap(twin => twinManifests(twin, receiver.urlOf)),
  );
  for (const { producer, partner } of TWINS) {
    await waitForAll(cluster, 'activation', producer, 'Effective');
    await waitForAll(cluster, 'subscription', partner, 'Live');
  }
  notNorth = await openOutside(installed, { workspaces: [NORTH.producer, NORTH.partner], integrations: [INTEGRATION] });
  for (const twin of TWINS) {
    const { ingressUrl } = sluice;
    for (const queue of QUEUES) {
      const publisher = createPublisher({ ingressUrl, producer: twin.producer, queue, key: keyOf(twin) });
      publishers.set(`${twin.producer}/${queue}`, publisher);
    }
  }
});

afterAll(async () => {
  await Promise.all([...publishers.values()].map(publisher => publisher.close()));
  await notNorth?.close();
  await observer?.close();
  await receiver?.close();
  await installed?.stop();
});

/** Returns the events of a tenant. All tenants use the same ids and group keys, but a different body. */
const samplesOf = ({ producer }: Twin, queue: string, round: string): Sample[] =>
  Array.from({ length: PER_KEY }, (_, n) => n).flatMap(n =>
    GROUP_KEYS.map(groupKey => makeSample(`${round}.${groupKey}.${n}`, groupKey, `${n} of ${queue} of ${producer}`)),
  );

/** All published events so far, by endpoint. */
const published = new Map<string, Sample[]>();

async function publish(twin: Twin, queue: string, round: string): Promise<void> {
  const samples = samplesOf(twin, queue, round);
  const answers = await publishers.get(`${twin.producer}/${queue}`)?.publishAll(samples, 4);
  expect(countStatuses(answers?.values() ?? [])).toEqual({ 202: samples.length });
  const endpoint = endpointOf(twin, queue);
  published.set(endpoint, [...(published.get(endpoint) ?? []), ...samples]);
}

async function arrived(twin: Twin, queue: string): Promise<void> {
  const endpoint = endpointOf(twin, queue);
  const samples = published.get(endpoint) ?? [];
  const all = async () => receiver.delivered(endpoint).size >= samples.length;
  await eventually(`all events are delivered to ${endpoint}`, all);
  expect(faultsOf(receiver, endpoint, samples)).toEqual([]);
}

/** Waits until all attempts have ended, so that they do not write anything later. */
async function ended(twin: Twin, queue: string): Promise<void> {
  const wanted = (published.get(endpointOf(twin, queue)) ?? []).length;
  const name = { producer: twin.producer, partner: twin.partner, name: feedOf(queue) };
  const read = async () => {
    const { counters } = await readInbox(installed, name);
    return counters.delivered === wanted && counters;
  };
  const { value } = await eventually('all attempts have ended', read);
  expect(value).toEqual({ routed: wanted, delivered: wanted });
}

/** Waits until the status of a Subscription shows its first delivery. It does not change after that. */
async function shown(partner: string, queue: string): Promise<void> {
  const status = ['get', 'subscription', feedOf(queue), '-n', partner, '-o', 'jsonpath={.status.delivery.lastAttempt}'];
  const isShown = async () => (await kubectl(installed.cluster, status)) === 'Succeeded';
  await eventually(`the status of ${partner} shows the delivery`, isShown);
}

describe('two tenants that use the same names for everything', () => {
  it('receive their own events at the same time, and only count their own events', async () => {
    const everywhere = TWINS.flatMap(twin => QUEUES.map(queue => [twin, queue] as const));
    await Promise.all(everywhere.map(([twin, queue]) => publish(twin, queue, 'first')));
    for (const [twin, queue] of everywhere) await arrived(twin, queue);
    // One tenant receives another event.
    await publish(NORTH, 'orders', 'second');
    await arrived(NORTH, 'orders');
    for (const [twin, queue] of everywhere) await ended(twin, queue);
    for (const { partner } of TWINS) {
      for (const queue of QUEUES) await shown(partner, queue);
    }
    const once = PER_KEY * GROUP_KEYS.length;
    for (const [twin, total] of [
      [NORTH, 3 * once],
      [SOUTH, 2 * once],
    ] as const) {
      const isCounted = async () => {
        const { eventsIn, deliveries, tokens } = await readSeries(installed.redis, twin.producer);
        return eventsIn === total && deliveries === total && tokens === total;
      };
      await eventually('the series contains all own events', isCounted);
    }
  });

  const settled = () => lookSettled(notNorth);

  /** Expects that events of every group key and every stream of south are delivered, and nothing else. */
  async function expectSouthServed(round: string): Promise<void> {
    for (const queue of QUEUES) {
      await publish(SOUTH, queue, round);
      await arrived(SOUTH, queue);
      await ended(SOUTH, queue);
    }
  }

  const { producer, partner } = NORTH;
  const target = { kind: 'CatalogStream', name: 'orders' };
  const first = feedOf('orders');
  const key = activation(producer, INTEGRATION, 'red');
  const put = (manifest: Parameters<Observer['apply']>[0]) => observer.apply(manifest);

  it.each<[string, () => Promise<unknown>, Parameters<Observer['until']>[0]]>([
    [
      'deactivates a group key',
      () => put(activation(producer, INTEGRATION, 'red', { revoked: true })),
      ['Activation', key.metadata.name, producer, 'Effective', 'False/Revoked'],
    ],
    [
      'blocks a stream',
      () => put(block(producer, 'no-orders', { integration: INTEGRATION, target })),
      ['Subscription', first, partner, 'Live', 'False/Blocked'],
    ],
    [
      'blocks a package',
      () =>
        put(block(producer, 'no-package', { integration: INTEGRATION, target: { kind: 'Package', name: PACKAGE } })),
      ['Subscription', feedOf('refunds'), partner, 'Live', 'False/Blocked'],
    ],
    [
      'archives the package',
      () => put({ ...pkg(producer, PACKAGE, QUEUES), spec: { streams: QUEUES, archived: true } }),
      ['Package', PACKAGE, producer, 'Ready', 'True/Compiled'],
    ],
    [
      'unblocks the package',
      () => observer.remove('Block', 'no-package', producer),
      ['Subscription', feedOf('refunds'), partner, 'Live', 'True/Live'],
    ],
    [
      'suspends',
      () => put(feed(NORTH, 'refunds', endpoint => receiver.urlOf(endpoint), { suspended: true })),
      ['Subscription', feedOf('refunds'), partner, 'Live', 'False/Suspended'],
    ],
    [
      'declares event types',
      () => put(stream(producer, 'refunds', { eventTypes: ['x'], public: false })),
      ['CatalogStream', 'refunds', producer, 'Published', 'False/Deprecated'],
    ],
    [
      'revokes the integration',
      () => put(integration(producer, INTEGRATION, { workspace: partner, revoked: true })),
      ['Integration', INTEGRATION, producer, 'Accepted', 'False/Revoked'],
    ],
  ])('nothing changes for one tenant if the other tenant %s', async (what, act, until) => {
    const before = await settled();
    await act();
    await observer.until(until);
    expect(await settled()).toEqual(before);
    await expectSouthServed(what.replaceAll(' ', '-'));
  });

  it('a deleted tenant does not affect the other one, which receives its events', async () => {
    const before = await settled();
    for (const name of QUEUES) {
      await put(stream(producer, name, { deletionPolicy: 'Delete', ...(name === 'refunds' ? { public: false } : {}) }));
      await observer.remove('CatalogStream', name, producer);
      await observer.remove('Subscription', feedOf(name), partner);
    }
    await observer.remove('Workspace', producer);
    await observer.remove('Account', producer);
    const isGone = async () =>
      !(await observer.exists('Workspace', producer)) && !(await observer.exists('Subscription', first, partner));
    await eventually('the tenant is deleted', isGone);
    expect(await settled()).toEqual(before);
    await expectSouthServed('last');
    expect(new Set(receiver.attempts.map(({ subscription }) => subscription))).toEqual(
      new Set(TWINS.flatMap(twin => QUEUES.map(queue => endpointOf(twin, queue)))),
    );
  });
});
