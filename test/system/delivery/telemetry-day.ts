import { expect } from 'vitest';
import { tenantId } from '../../../src/core/ids/ids.ts';
import type { Sluice } from '../../support/sluice.ts';
import { type FacadeWorld, ownedTenant } from '../rest/support/facade-world.ts';
import { eventually } from '../support/deadline.ts';
import { createPublisher, makeSample } from '../support/publisher.ts';
import type { Receiver } from '../support/receiver.ts';
import { activation, apply, ingressKey, integration, stream, subscription, waitForAll } from '../support/world.ts';

/** The name of each producer's stream. */
export const QUEUE = 'orders';

export interface Place {
  readonly world: FacadeWorld;
  /** A process with all roles. */
  readonly sluice: Sluice;
  readonly receiver: Receiver;
}

/**
 * Creates an additional producer with a partner. Performs all of their operations of a day once, including refused
 * operations.
 */
export async function liveOneDay({ world, sluice, receiver }: Place, name: string): Promise<void> {
  const { cluster } = world.installation;
  const partner = `${name}-partner`;
  await apply(cluster, [
    ...ownedTenant(world.issuer, name, name),
    ...ownedTenant(world.issuer, partner, partner),
    stream(name, QUEUE),
    ingressKey(name, `an-ingress-key-of-${name}`),
    integration(name, partner),
    subscription(partner, name, QUEUE, { url: receiver.urlOf(partner), retrySchedule: ['200ms'] }),
    activation(name, partner, 'open'),
  ]);
  await waitForAll(cluster, 'activation', name, 'Effective');
  await waitForAll(cluster, 'subscription', partner, 'Live');

  const key = `an-ingress-key-of-${name}`;
  const publisher = createPublisher({ ingressUrl: sluice.ingressUrl, producer: name, queue: QUEUE, key });
  receiver.behave(({ id, earlier }) =>
    id.endsWith('.refused') || (id.endsWith('.late') && earlier === 0) ? 500 : 204,
  );
  const statuses = [
    await publisher.publish(makeSample(`${name}.good`, 'open', 'body')),
    await publisher.post(makeSample(`${name}.good`, 'open', 'body')),
    await publisher.post(makeSample(`${name}.closed`, 'nobody-has-this', 'body')),
    await publisher.post(makeSample(`${name}.keyless`, undefined, 'body')),
    await publisher.post(makeSample(`${name}.late`, 'open', 'body')),
    await publisher.post(makeSample(`${name}.refused`, 'open', 'body')),
    await publisher.post(makeSample(`${name}.locked`, 'open', 'body'), { key: 'wrong' }),
    await publisher.post(makeSample(`${name}.lost`, 'open', 'body'), { queue: `no-queue-of-${name}` }),
  ].map(({ status }) => status);
  expect(statuses).toEqual([202, 202, 202, 202, 202, 202, 401, 404]);
  await publisher.close();
  const attempts = (id: string) => receiver.attempts.filter(attempt => attempt.id === `${name}.${id}`).length;
  await eventually('the last attempt is recorded', async () => attempts('late') === 2 && attempts('refused') === 2);

  const producer = await world.as(sluice, name);
  const path = `/waas/producer/${tenantId(name)}/catalog`;
  expect((await producer.get(path)).status).toBe(200);
  expect((await (await world.as(sluice, partner)).get(path)).status).toBe(403);
  expect((await fetch(`${sluice.facadeUrl}${path}`)).status).toBe(401);
  expect((await producer.get(`/waas/nothing/${name}`)).status).toBe(404);
}
