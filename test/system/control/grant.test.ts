import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { makeSample } from '../support/publisher.ts';
import { INGRESS_KEY, PRODUCER, QUEUE, RETRY_SOON, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation, apply, ingressKey, integration, stream, subscription, tenant } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'] });

async function send(id: string, groupKey = 'key', through = world.publisher): Promise<void> {
  expect((await through.post(makeSample(id, groupKey, id))).status).toBe(202);
}

describe('the grant', () => {
  it('is required: a Subscription waits for it, is admitted with it, and stops when it is revoked', async () => {
    const { observer, receiver } = world;
    const name = SUBSCRIPTION;
    const url = receiver.urlOf('eve');
    await apply(world.cluster, [
      ...tenant('eve'),
      // The name of an integration that belongs to another partner.
      subscription('eve', PRODUCER, QUEUE, { url, retrySchedule: RETRY_SOON }, { integration: 'ada' }),
    ]);
    await observer.until(['Subscription', name, 'eve', 'Ready', 'Unknown/WaitingForGrant']);
    expect(await observer.conditionOf('Subscription', name, 'eve', 'Live')).toBe('False/NotAdmitted');
    await send('foreign.0');
    await world.receiver.arrival('foreign.0', 'ada');

    // The response is the same if the integration is missing, so nobody can search for names.
    await observer.remove('Subscription', name, 'eve');
    await observer.untilGone(['Subscription', name, 'eve']);
    await observer.apply(subscription('eve', PRODUCER, QUEUE, { url, retrySchedule: RETRY_SOON }));
    await observer.until(['Subscription', name, 'eve', 'Ready', 'Unknown/WaitingForGrant']);
    await send('missing.0');
    await world.receiver.arrival('missing.0', 'ada');
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
    await world.receiver.arrival('granted.0', 'eve');

    await observer.apply(integration(PRODUCER, 'eve', { revoked: true }));
    const stoppedMs = await observer.until(['Subscription', name, 'eve', 'Ready', 'Unknown/WaitingForGrant']);
    await send('revoked.0');
    await world.receiver.arrival('revoked.0', 'ada');
    await delay(500);
    const atEve = receiver.attempts.filter(attempt => attempt.subscription === 'eve').map(({ id }) => id);
    // Events from before the grant are not delivered later.
    expect(atEve).toEqual(['granted.0']);
    console.log(`granted: live after ${Math.round(healedMs)} ms; revoked: closed after ${Math.round(stoppedMs)} ms`);
  });

  it('works for any order in which the objects are created', async () => {
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
    await apply(world.cluster, [
      namespace as ReturnType<typeof stream>,
      ...tenant('zoe'),
      subscription('zoe', 'mall', QUEUE, { url }),
    ]);
    for (const manifest of manifests) {
      await apply(world.cluster, [manifest as ReturnType<typeof stream>]);
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
    const mall = world.publisherOf(world.sluice, { producer: 'mall' });
    await send('mall.0', 'key', mall);
    await world.receiver.arrival('mall.0', 'zoe');
    await mall.close();
  });
});
