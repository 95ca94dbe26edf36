import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { createPublisher, makeSample, type Publisher } from '../support/publisher.ts';
import {
  INGRESS_KEY,
  PRODUCER,
  QUEUE,
  RETRY_SOON,
  type Running,
  SUBSCRIPTION,
  settle,
} from '../support/small-world.ts';
import { activation, apply, ingressKey, integration, stream, subscription, tenant } from '../support/world.ts';

let installed: Installation;
let sluice: Sluice;
let world: Running;
let publisher: Publisher;

beforeAll(async () => {
  installed = await install();
  sluice = await installed.start();
  world = await settle(installed, { partners: ['ada'], groupKeys: ['key'] });
  publisher = world.publisherOf(sluice);
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
});

async function send(id: string, groupKey = 'key', through = publisher): Promise<void> {
  expect((await through.post(makeSample(id, groupKey, id))).status).toBe(202);
}

const arrived = (id: string, partner: string) =>
  eventually(`${id} arrives at ${partner}`, async () => world.receiver.delivered(partner).has(id), {
    withinMs: 15_000,
    everyMs: 5,
  });

describe('the grant', () => {
  it('is needed: a Subscription that nobody granted waits, heals, and stops when it is taken back', async () => {
    const { observer, receiver } = world;
    const name = SUBSCRIPTION;
    const url = receiver.urlOf('eve');
    await apply(installed.cluster, [
      ...tenant('eve'),
      // Somebody else's integration, by name.
      subscription('eve', PRODUCER, QUEUE, { url, retrySchedule: RETRY_SOON }, { integration: 'ada' }),
    ]);
    await observer.until(['Subscription', name, 'eve', 'Ready', 'Unknown/WaitingForGrant']);
    expect(await observer.conditionOf('Subscription', name, 'eve', 'Live')).toBe('False/NotAdmitted');
    await send('foreign.0');
    await arrived('foreign.0', 'ada');

    // One that does not exist says the same: nothing can be probed.
    await observer.remove('Subscription', name, 'eve');
    await eventually('it is gone', async () => !(await observer.exists('Subscription', name, 'eve')), {
      withinMs: 10_000,
    });
    await observer.apply(subscription('eve', PRODUCER, QUEUE, { url, retrySchedule: RETRY_SOON }));
    await observer.until(['Subscription', name, 'eve', 'Ready', 'Unknown/WaitingForGrant']);
    await send('missing.0');
    await arrived('missing.0', 'ada');
    expect(receiver.attempts.filter(attempt => attempt.subscription === 'eve')).toEqual([]);

    await observer.apply(integration(PRODUCER, 'eve'));
    await observer.apply(activation(PRODUCER, 'eve', 'key'));
    const healedMs = await observer.until(['Subscription', name, 'eve', 'Live', 'True/Live']);
    await observer.until([
      'Activation',
      activation(PRODUCER, 'eve', 'key').metadata.name,
      PRODUCER,
      'Effective',
      'True/Routing',
    ]);
    await send('granted.0');
    await arrived('granted.0', 'eve');

    await observer.apply(integration(PRODUCER, 'eve', { revoked: true }));
    const stoppedMs = await observer.until(['Subscription', name, 'eve', 'Ready', 'Unknown/WaitingForGrant']);
    await send('revoked.0');
    await arrived('revoked.0', 'ada');
    await delay(500);
    const atEve = receiver.attempts.filter(attempt => attempt.subscription === 'eve').map(({ id }) => id);
    // Nothing of before the grant is made up for.
    expect(atEve).toEqual(['granted.0']);
    console.log(
      `grant given: live after ${Math.round(healedMs)} ms; taken back: closed after ${Math.round(stoppedMs)} ms`,
    );
  });

  it('heals in whatever order things appear', async () => {
    const { observer, receiver } = world;
    const url = receiver.urlOf('zoe');
    const [namespace, account, workspace] = tenant('mall') as [object, object, object];
    const manifests = [
      stream('mall', QUEUE),
      ingressKey('mall', INGRESS_KEY),
      integration('mall', 'zoe'),
      activation('mall', 'zoe', 'key'),
      workspace,
      account,
    ];
    await apply(installed.cluster, [
      namespace as ReturnType<typeof stream>,
      ...tenant('zoe'),
      subscription('zoe', 'mall', QUEUE, { url }),
    ]);
    for (const manifest of manifests) {
      await apply(installed.cluster, [manifest as ReturnType<typeof stream>]);
      await delay(300);
    }
    await observer.until(['Subscription', `mall-${QUEUE}`, 'zoe', 'Live', 'True/Live']);
    await observer.until(['Workspace', 'mall', undefined, 'Ready', 'True/NamespaceReady']);
    await observer.until(['CatalogStream', QUEUE, 'mall', 'Ready', 'True/QueueReady']);
    await observer.until([
      'Activation',
      activation('mall', 'zoe', 'key').metadata.name,
      'mall',
      'Effective',
      'True/Routing',
    ]);
    const mall = createPublisher({ ingressUrl: sluice.ingressUrl, producer: 'mall', queue: QUEUE, key: INGRESS_KEY });
    await send('mall.0', 'key', mall);
    await arrived('mall.0', 'zoe');
    await mall.close();
  });
});
