import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import type { Sluice } from '../../support/sluice.ts';
import { type FacadeWorld, openFacadeWorld, ownedTenant } from '../rest/support/facade-world.ts';
import { eventually, spread } from '../support/deadline.ts';
import { makeSample, type Publisher } from '../support/publisher.ts';
import type { RestClient } from '../support/rest-client.ts';
import { PRODUCER, type Running, settle } from '../support/small-world.ts';
import { untilAnswered } from '../support/until-answered.ts';
import { apply } from '../support/world.ts';

/** Tests that users can read their own writes using three independent facades. Each call uses another facade. */

const PAIRS = 500;
const AT_ONCE = 16;
const PARTNER = 'globex';

let world: FacadeWorld;
let running: Running;
let publisher: Publisher;
let sluice: Sluice;
let clients: readonly RestClient[];

const groupKeyOf = (n: number) => `customer ${n}`;
const pairOf = (n: number) => ({
  producerTenantPublicId: tenantId(PRODUCER),
  integrationPublicId: publicId('Integration', PRODUCER, PARTNER),
  groupKey: groupKeyOf(n),
});

/** Runs `work` for each number below `count`, with this concurrency. */
async function forEachOf(count: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let n = next++; n < count; n = next++) await work(n);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

beforeAll(async () => {
  world = await openFacadeWorld();
  sluice = await world.start();
  const facades = [sluice, await world.start({ role: 'facade' }), await world.start({ role: 'facade' })];
  running = await settle(world.installation, { partners: [PARTNER], groupKeys: [] });
  await apply(world.installation.cluster, ownedTenant(world.issuer, PRODUCER, 'ada'));
  clients = await Promise.all(facades.map(facade => world.as(facade, 'ada')));
  publisher = running.publisherOf(sluice);
  await eventually('every facade knows the owner', async () => {
    const replies = await Promise.all(
      clients.map(client => client.get(`/waas/producer/${tenantId(PRODUCER)}/catalog`)),
    );
    return replies.every(({ status }) => status === 200);
  });
});

afterAll(async () => {
  await running?.close();
  await world?.stop();
});

test(`an event published right after an activation returned 200 is routed, ${PAIRS} times of ${PAIRS}`, async () => {
  const tookMs: number[] = [];
  await forEachOf(PAIRS, async n => {
    const startedMs = performance.now();
    const client = clients[n % clients.length] as RestClient;
    const reply = await untilAnswered(() => client.post('/waas/activations', pairOf(n)));
    tookMs.push(performance.now() - startedMs);
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    const published = await publisher.publish(makeSample(`open.${n}`, groupKeyOf(n), `body ${n}`));
    expect(published.status).toBe(202);
  });
  const { receiver } = running;
  await eventually('all events are delivered', async () => receiver.delivered(PARTNER).size === PAIRS);
  process.stdout.write(`activation over three facades: ${spread(tookMs)}\n`);
});

test(`an event published right after a deactivation returned 204 is never routed, in ${PAIRS} tries`, async () => {
  await forEachOf(PAIRS, async n => {
    const client = clients[(n + 1) % clients.length] as RestClient;
    const reply = await untilAnswered(() => client.remove('/waas/activations', pairOf(n)));
    expect(reply.status, JSON.stringify(reply.body)).toBe(204);
    expect((await publisher.publish(makeSample(`closed.${n}`, groupKeyOf(n), `body ${n}`))).status).toBe(202);
  });
  // When this event arrives, all events published before it have been checked.
  const [first] = clients as [RestClient];
  expect((await untilAnswered(() => first.post('/waas/activations', pairOf(0)))).status).toBe(200);
  await publisher.publish(makeSample('the end', groupKeyOf(0), 'the end'));
  const { receiver } = running;
  await eventually('the last one is delivered', async () => receiver.delivered(PARTNER).has('the end'));
  expect(await sluice.metric('sluice_ingress_not_routed_total', { reason: 'not_activated' })).toBe(PAIRS);
  expect([...receiver.delivered(PARTNER)].filter(id => id.startsWith('closed.'))).toEqual([]);
});

test('an object created by one facade is immediately visible to the others', async () => {
  for (let n = 0; n < 30; n++) {
    const [first, second, third] = [0, 1, 2].map(i => clients[(n + i) % clients.length]) as [
      RestClient,
      RestClient,
      RestClient,
    ];
    const path = `/waas/producer/${tenantId(PRODUCER)}/packages`;
    const made = await untilAnswered(() => first.post<{ publicId: string }>(path, { name: `package ${n}` }));
    expect([200, 201], JSON.stringify(made.body)).toContain(made.status);
    expect((await untilAnswered(() => second.get(`${path}/${made.body.publicId}`))).status).toBe(200);
    expect((await untilAnswered(() => third.post(`${path}/${made.body.publicId}/archive`))).status).toBe(204);
  }
});
