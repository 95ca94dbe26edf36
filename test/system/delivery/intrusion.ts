import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { connect, type KubeClient } from '../../../src/kube/client.ts';
import type { AnyObject } from '../../../src/kube/object.ts';
import { resourceOf } from '../../../src/kube/resource.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import type { Sluice } from '../../support/sluice.ts';
import { faultsOf } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { type Observer, observe } from '../support/observer.ts';
import { createPublisher, makeSample, type Publisher, type Sample } from '../support/publisher.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import {
  endpointOf,
  feedOf,
  GROUP_KEYS,
  INTEGRATION,
  keyOf,
  lookSettled,
  openOutside,
  type Twin,
  twinManifests,
} from '../support/twins.ts';
import { apply, block, integration, kubectl, type Manifest, pkg, stream, waitForAll } from '../support/world.ts';

export const NORTH: Twin = { producer: 'north', partner: 'anna' };
/** Eve owns a workspace that is both the producer and the partner, and uses the same names as north. */
export const EVE: Twin = { producer: 'eve', partner: 'eve' };
/** Additional objects created by eve, and references to objects that don't exist. */
const MORE = ['mallory', 'squat', 'plain', 'nowhere'];
/** Integrations that eve creates in her own namespace. */
const OWN = [INTEGRATION, 'reach', 'reach-nowhere'];
export const [KEY = ''] = GROUP_KEYS;

/** The expected condition of an object, as used by `observer.until`. */
export type Said = Parameters<Observer['until']>[0];

/** North and its partner anna, whose data another tenant of the same cluster, eve, tries to access. */
export interface Intrusion {
  readonly installed: Installation;
  readonly receiver: Receiver;
  readonly observer: Observer;
  readonly client: KubeClient;
  /** The senders for the queue `orders` of each tenant. */
  readonly north: Publisher;
  readonly eve: Publisher;
  readonly put: (...manifests: readonly Manifest[]) => Promise<void>;
  /** Waits until the controller has not had any work for a short time. */
  readonly idle: () => Promise<void>;
  /** Expects that events of north are only delivered to its partner. */
  readonly expectDelivery: () => Promise<void>;
  /**
   * Calls `act`, waits until the change has been applied, and expects that only data of eve has changed, both in
   * objects and in Redis.
   */
  readonly expectUntouched: (act: () => Promise<unknown>, says?: readonly Said[]) => Promise<void>;
  /**
   * Returns a status of eve without values that are specific to the object: its id, its times, its salt, and the given
   * `names`.
   */
  readonly statusOf: (kind: KindName, name: string, names: readonly string[]) => Promise<string>;
  readonly close: () => Promise<void>;
}

/** The resources of north and eve: the same streams, and integrations of north that do not give eve any access. */
function manifestsOf(receiver: Receiver): Manifest[] {
  return [
    ...twinManifests(NORTH, receiver.urlOf),
    ...twinManifests(EVE, receiver.urlOf),
    stream('north', 'old', { public: false }),
    stream('north', 'invoices'),
    pkg('north', 'finance', ['invoices']),
    integration('north', 'only-norths', { workspace: 'anna' }),
    integration('north', 'ended', { workspace: 'eve', revoked: true }),
    integration('north', 'declined', { workspace: 'eve', declined: true }),
    integration('north', 'invited', { workspace: undefined, invitedEmail: 'someone@example.com' }),
    block('north', 'no-refunds', { integration: INTEGRATION, target: { kind: 'CatalogStream', name: 'refunds' } }),
  ];
}

async function waitUntilApplied(cluster: Cluster, observer: Observer): Promise<void> {
  for (const producer of ['north', 'eve']) await waitForAll(cluster, 'activation', producer, 'Effective');
  await observer.until(['Subscription', feedOf('orders'), 'anna', 'Live', 'True/Live']);
  await observer.until(['Subscription', feedOf('refunds'), 'anna', 'Live', 'False/Blocked']);
  await observer.until(['Block', 'no-refunds', 'north', 'Enforced', 'True/Enforced']);
  await waitForAll(cluster, 'subscription', 'eve', 'Live');
}

/** Waits until the controller has not had any work for a short time. */
async function waitUntilIdle(sluice: Sluice): Promise<void> {
  const metrics = ['workqueue_depth', 'controller_runtime_active_workers'];
  for (let calm = 0; calm < 3; calm++) {
    await delay(100);
    const busy = await Promise.all(metrics.map(name => sluice.metric(name)));
    if (busy.some(n => n > 0)) calm = -1;
  }
}

/** Returns a check that an event of north is only delivered to its partner. */
function deliveryCheck(north: Publisher, receiver: Receiver, redis: RedisClient): () => Promise<void> {
  const sent: Sample[] = [];
  const endpoint = endpointOf(NORTH, 'orders');
  return async () => {
    const sample = makeSample(`north.${sent.length}`, KEY, `of north: ${sent.length}`);
    sent.push(sample);
    expect((await north.post(sample)).status).toBe(202);
    await receiver.arrival(sample.id, endpoint);
    const keysLike = async (pattern: string) => (await redis.call('keys', pattern)) as string[];
    const isNoted = async () => (await Promise.all(['*:pend', '*:pend:*', '*:cl:*'].map(keysLike))).flat().length === 0;
    await eventually('the delivery is counted', isNoted);
    expect(faultsOf(receiver, endpoint, sent)).toEqual([]);
    const norths = receiver.attempts.filter(({ id }) => id.startsWith('north.'));
    expect(norths.filter(each => each.subscription !== endpoint)).toEqual([]);
  };
}

async function readStatus(client: KubeClient, kind: KindName, name: string, names: readonly string[]): Promise<string> {
  const which = { namespace: 'eve', name };
  const object = await client.get<AnyObject & { status?: object }>(resourceOf(kind), which);
  const text = JSON.stringify(object?.status, (field, value) =>
    ['publicId', 'lastTransitionTime', 'rotatedAt', 'salt'].includes(field) ? undefined : value,
  );
  return names.reduce((all, each) => all.replaceAll(new RegExp(`\\b${each}\\b`, 'g'), '<name>'), text);
}

/** Starts Sluice with the tenants north and eve and waits until north's first delivery shows in its status. */
export async function openIntrusion(): Promise<Intrusion> {
  const installed = await install();
  const { cluster } = installed;
  const receiver = await startReceiver();
  const observer = observe(cluster.kubeconfig);
  const client = connect({ kubeconfig: cluster.kubeconfig });
  const sluice = await installed.start();
  await apply(cluster, manifestsOf(receiver));
  await waitUntilApplied(cluster, observer);
  const { ingressUrl } = sluice;
  const north = createPublisher({ ingressUrl, producer: 'north', queue: 'orders', key: keyOf(NORTH) });
  const eve = createPublisher({ ingressUrl, producer: 'eve', queue: 'orders', key: keyOf(EVE) });
  const outside = await openOutside(installed, { workspaces: ['eve', ...MORE], integrations: OWN });
  const idle = () => waitUntilIdle(sluice);
  const expectDelivery = deliveryCheck(north, receiver, outside.redis);

  await expectDelivery();
  // The status of the Subscription shows the first delivery and does not change after that.
  const shown = `jsonpath={.status.delivery.lastAttempt}`;
  const isShown = async () =>
    (await kubectl(cluster, ['get', 'subscription', feedOf('orders'), '-n', 'anna', '-o', shown])) === 'Succeeded';
  await eventually('the status shows the delivery', isShown);
  await idle();
  return {
    installed,
    receiver,
    observer,
    client,
    north,
    eve,
    idle,
    expectDelivery,
    put: (...manifests) => apply(cluster, manifests),
    expectUntouched: async (act, says = []) => {
      const before = await lookSettled(outside);
      await act();
      for (const expected of says) await observer.until(expected);
      await idle();
      expect(await outside.look()).toEqual(before);
      await expectDelivery();
    },
    statusOf: (kind, name, names) => readStatus(client, kind, name, names),
    close: async () => {
      for (const each of [north, eve, outside, client, observer, receiver]) await each.close();
      await installed.stop();
    },
  };
}
