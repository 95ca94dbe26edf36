import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import type { Sluice } from '../../support/sluice.ts';
import { type FacadeWorld, openFacadeWorld, ownedTenant } from '../rest/support/facade-world.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import type { Problem, RestClient } from '../support/rest-client.ts';
import { PRODUCER, type Running, settle } from '../support/small-world.ts';
import { untilAnswered } from '../support/until-answered.ts';
import { apply, kubectl } from '../support/world.ts';

/**
 * The facade's responses while a dependency is unavailable must be as documented, and must not exceed the
 * deadline.
 */

const PARTNER = 'globex';
const TENANT = tenantId(PRODUCER);
/** The maximum time to wait for the controller, including the surrounding calls and the delays of a busy machine. */
const ANSWERED_WITHIN_MS = 15_000;
/** The time for which a call waits for the controller, in milliseconds. */
const WAITS_MS = 5_000;

let world: FacadeWorld;
let running: Running;
/** A process with all roles except for the facade. Tests kill and restart it. */
let controllers: Sluice[];
let facade: Sluice;
let ada: RestClient;

const pair = (groupKey: string) => ({
  producerTenantPublicId: TENANT,
  integrationPublicId: publicId('Integration', PRODUCER, PARTNER),
  groupKey,
});

async function timed<T>(call: Promise<T>): Promise<T> {
  const startedMs = performance.now();
  const reply = await call;
  expect(performance.now() - startedMs).toBeLessThan(ANSWERED_WITHIN_MS);
  return reply;
}

function expectUnavailable({ status, headers, body }: Problem): void {
  expect(status, JSON.stringify(body)).toBe(503);
  expect(headers.get('retry-after')).toMatch(/^\d+$/);
  expect(['unavailable', 'not_in_force']).toContain(body.code);
}

beforeAll(async () => {
  world = await openFacadeWorld();
  controllers = [await world.start({ role: 'controller' }), await world.start({ role: 'controller' })];
  await world.start({ role: 'dispatcher' });
  facade = await world.start({ role: 'facade' });
  running = await settle(world.installation, { partners: [PARTNER], groupKeys: [] });
  await apply(world.installation.cluster, ownedTenant(world.issuer, PRODUCER, 'ada'));
  ada = await world.as(facade, 'ada');
  await untilAnswered(() => ada.get(`/waas/producer/${TENANT}/catalog`) as Promise<Problem>);
});

afterAll(async () => {
  await running?.close();
  await world?.stop();
});

afterEach(async () => {
  const activated = async () => (await ada.post('/waas/activations', pair('between'))).status === 200;
  await eventually('everything works again', activated, { everyMs: 200 });
});

test('after a flush of Redis, an activation only returns 200 when the gate is open again', async () => {
  const ingress = await world.start({ role: 'ingress' });
  const publisher = running.publisherOf(ingress);
  expect((await ada.post('/waas/activations', pair('flushed'))).status).toBe(200);
  await world.installation.redis.command('FLUSHALL');
  // The status of the activation still shows that the gate is open.
  const reply = await untilAnswered(() => timed(ada.post('/waas/activations', pair('flushed'))) as Promise<Problem>);
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  expect((await publisher.publish(makeSample('after', 'flushed', 'x'))).status).toBe(202);
  await eventually('the event is delivered', async () => running.receiver.delivered(PARTNER).has('after'));
  await ingress.stop();
});

test('a paused workspace can be read, and refuses changes that open something', async () => {
  const { cluster } = world.installation;
  await kubectl(cluster, ['annotate', 'workspace', PRODUCER, 'sluice.dev/paused=true']);
  await eventually(
    'the facade has seen the pause',
    async () =>
      (await ada.post<{ code?: string }>('/waas/activations', pair('paused'))).body.code === 'workspace_paused',
  );
  const streams: Problem = await ada.put('/waas/streams', { producerTenantPublicId: TENANT, name: 'more' });
  expect(streams).toMatchObject({ status: 409, body: { code: 'workspace_paused' } });
  expect((await ada.remove('/waas/activations', pair('never'))).status).toBe(204);
  expect((await ada.get(`/waas/producer/${TENANT}/catalog`)).status).toBe(200);
  await kubectl(cluster, ['annotate', 'workspace', PRODUCER, 'sluice.dev/paused-']);
  await eventually(
    'the workspace has resumed',
    async () => (await ada.post('/waas/activations', pair('paused'))).status === 200,
  );
});

test('without Redis, a call returns 503 within the deadline, and works afterwards', async () => {
  await world.installation.redis.kill('SIGSTOP');
  try {
    expectUnavailable((await timed(ada.post('/waas/activations', pair('no redis')))) as Problem);
    expectUnavailable((await timed(ada.get(`/waas/producer/${TENANT}/metrics/series`))) as Problem);
  } finally {
    await world.installation.redis.kill('SIGCONT');
  }
  const reply = await untilAnswered(() => ada.post('/waas/activations', pair('no redis')) as Promise<Problem>);
  expect(reply.status).toBe(200);
});

test('a call during which the leader is killed returns 503 or 200, and then 200 as soon as another controller leads', async () => {
  const leading = await leaderOf();
  const call = timed(ada.post('/waas/activations', pair('leader'))) as Promise<Problem>;
  await leading.kill();
  const reply = await call;
  if (reply.status !== 200) expectUnavailable(reply);
  const without: Problem = await timed(ada.post('/waas/activations', pair('leader, later')));
  if (without.status !== 200) expectUnavailable(without);
  const later = await untilAnswered(() => ada.post('/waas/activations', pair('leader, later')) as Promise<Problem>);
  expect(later.status).toBe(200);
  await leading.restart();
});

test('without the API server, changes return 503 immediately, and all calls return 503 after 30 s; both work afterwards', async () => {
  const { cluster } = world.installation;
  await cluster.killApiServer();
  try {
    expectUnavailable((await timed(ada.post('/waas/activations', pair('no api')))) as Problem);
    // Cached responses are allowed for a while, but not for longer than they can be trusted.
    await eventually(
      'cached responses end',
      async () => (await ada.get(`/waas/producer/${TENANT}/catalog`)).status === 503,
      { everyMs: 500 },
    );
    // The facade has worked before, and all replicas share the API server, so it remains in the Service and reports the
    // problem.
    const reports = async () => {
      const [status, body] = await facade.readyz();
      expect(status).toBe(200);
      return body.startsWith('ok\nfacade: The caches of ');
    };
    await eventually('it reports this', reports);
  } finally {
    await cluster.startApiServer();
  }
  const reply = await untilAnswered(() => ada.post('/waas/activations', pair('no api')) as Promise<Problem>);
  expect(reply.status, JSON.stringify(reply.body)).toBe(200);
  await eventually('the facade is not impaired', async () => (await facade.readyz())[1] === 'ok\n');
});

test('a facade that is stopping responds to the requests in progress', async () => {
  const signalAll = (signal: NodeJS.Signals) => Promise.all(controllers.map(each => each.kill(signal)));
  // While the controllers are stopped, no changes are applied, and all calls wait for them.
  await signalAll('SIGSTOP');
  const calls = Array.from({ length: 5 }, async (_, n) => {
    const startedMs = performance.now();
    const { status } = await ada.post('/waas/activations', pair(`last ${n}`));
    return { status, tookMs: performance.now() - startedMs };
  });
  try {
    const inFlight = () => facade.metric('sluice_facade_requests_in_flight');
    await eventually('all requests have been received', async () => (await inFlight()) === calls.length, {
      withinMs: 4_000,
    });
    const stopped = facade.stop();
    await signalAll('SIGCONT');
    // On a busy machine, a change may not be applied in time.
    for (const { status, tookMs } of await Promise.all(calls)) {
      if (status === 200) continue;
      expect(status).toBe(503);
      expect(tookMs).toBeGreaterThan(WAITS_MS - 100);
    }
    expect((await stopped).code).toBe(0);
  } finally {
    await signalAll('SIGCONT');
    await facade.restart();
  }
});

/** Returns the last message of a controller when it becomes the leader, or when it stops leading. */
const TURNS = new Set(['sluice runs', 'started leading', 'lost the Lease', 'stopping']);

async function leaderOf(): Promise<Sluice> {
  const { value } = await eventually('one controller leads', async () => {
    for (const each of controllers) {
      const last = (await each.logLines()).findLast(({ msg }) => TURNS.has(String(msg)));
      if (each.running() && last?.['msg'] === 'started leading') return each;
    }
    return undefined;
  });
  return value;
}
