import { expect, test, vi } from 'vitest';
import {
  INTEGRATION,
  JSON_BODY,
  problemOf,
  type StartedFacade,
  TENANT,
  useFacadeServers,
} from '../../test/support/facade/facade-server.ts';
import { exchange } from '../../test/support/facade/raw-exchange.ts';
import { ROUTE_PRICES } from '../../test/support/facade/route-prices.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { createLogger } from '../telemetry/log.ts';
import { createCaches } from './caches/caches.ts';
import { BYTES_PER_POINT } from './contract/rate-limit.ts';
import { bodyLimitOf } from './contract/route.ts';
import { ROUTES } from './routes.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

/** Tests the cost of calls, and the number of waiting calls, using the routes. */

const SUBSCRIPTION = 'sub_0123456789abcdefghjk';
const OF_INTEGRATION = `POST /waas/integrations/${INTEGRATION}`;

const facades = useFacadeServers();
let facade: StartedFacade;

/** Starts a facade with a subscription's inbox. Points come back within a minute. */
async function start(parts: object, points = 1_000, accountPoints = 1_000) {
  const clock = createManualClock();
  const subscription = { metadata: { uid: 'u' }, spec: { producer: 'shop', integration: 'shop' } };
  const account = { metadata: { name: 'shop' }, spec: { owners: [], plan: 'Free' } };
  const get = (kind: string) => (kind === 'Account' ? account : undefined);
  const caches = { assertCurrent: () => undefined, get, find: async () => subscription };
  const limits = { eventLoopDelayMs: 0, pointsPerMinute: points, accountPointsPerMinute: () => accountPoints };
  facade = await facades.start(limits, undefined, undefined, { caches, clock, ...parts });
  return clock;
}

/** The parts of a facade with this many streams of a producer, none of which contains the event. */
function searchedStreams(count: number, searched: string[] = []) {
  const streams = Array.from({ length: count }, (_, n) => ({ metadata: { name: `s-${n}` } }));
  return {
    caches: { assertCurrent: () => undefined, list: (kind: string) => (kind === 'CatalogStream' ? streams : []) },
    routing: { findEvent: async (_tenant: string, stream: string) => void searched.push(stream) },
  };
}

const search = async () =>
  exchange(facade.port, await facades.request(`GET /waas/producer/${TENANT}/events/order-1`, [], ''));

async function post(path: string, body: object, subject = 'ada') {
  const text = JSON.stringify(body);
  const headers = [JSON_BODY, `Content-Length: ${text.length}`];
  return exchange(facade.port, await facades.request(`${OF_INTEGRATION}${path}`, headers, text, subject));
}

/** Returns the caller's remaining points after a call. */
const leftAfter = ({ headers }: Awaited<ReturnType<typeof post>>) =>
  /"caller";r=(\d+)/.exec(headers['ratelimit'] ?? '')?.[1];

test('each operation has its specified cost, and each cost is specified', () => {
  const prices = Object.fromEntries(ROUTES.map(({ operation, cost = 1 }) => [operation, cost]));
  expect(prices).toEqual(ROUTE_PRICES);
});

test('each call can be made with the lowest limit, which is 10 points per minute', () => {
  const most = ROUTES.flatMap(({ cost = 1, ...route }) => [cost, Math.ceil(bodyLimitOf(route) / BYTES_PER_POINT)]);
  expect(Math.max(...most)).toBe(10);
});

test('a call costs at least 1 point for every 128 KiB of its body, and is charged before the body is read', async () => {
  await start({});
  const put = async (headers: readonly string[], body = '') =>
    exchange(facade.port, await facades.request('PUT /waas/streams', [JSON_BODY, ...headers], body));
  const text = (bytes: number) => `{"unknown":"${'x'.repeat(bytes - 14)}"}`;
  const sizes = [BYTES_PER_POINT, BYTES_PER_POINT + 1, 8 * BYTES_PER_POINT];
  const left: (string | undefined)[] = [];
  for (const bytes of sizes) {
    const answer = await put([`Content-Length: ${bytes}`], text(bytes));
    expect(problemOf(answer)).toBe('422 invalid_request');
    left.push(leftAfter(answer));
  }
  // A body that is too large costs as much as the largest one. It is not read.
  left.push(leftAfter(await put(['Content-Length: 99999999'])));
  left.push(leftAfter(await put(['Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n')));
  expect(left).toEqual(['999', '997', '989', '981', '973']);
});

test('an id or key that has to be looked up inside of an own workspace costs 20 more points', async () => {
  let lookups = 0;
  const list = async () => {
    lookups++;
    return { items: [], resourceVersion: '1' };
  };
  const workspace = { metadata: { name: 'shop', uid: 'w', resourceVersion: '1' }, spec: { account: 'shop' } };
  const get = async ({ kind }: { kind: string }) => {
    if (kind === 'Workspace') return workspace;
    lookups++;
    return undefined;
  };
  const client = { list, get } as unknown as KubeClient;
  const caches = createCaches(client, createManualClock(), createLogger({ level: 'silent' }));
  await start({ caches: { ...caches, assertCurrent: () => undefined } });
  const read = async (path: string) =>
    exchange(facade.port, await facades.request(`GET /waas/producer/${TENANT}${path}`, [], ''));
  const unknown = await read(`/packages/pkg_0123456789abcdefghjk`);
  expect([problemOf(unknown), leftAfter(unknown), lookups]).toEqual(['404 unknown_resource', '979', 1]);
  // Deleting an unknown object succeeds, and costs the same.
  const removed = await exchange(
    facade.port,
    await facades.request(`DELETE /waas/integrations/${INTEGRATION}/subscriptions/${SUBSCRIPTION}`, [], ''),
  );
  expect([removed.status, leftAfter(removed), lookups]).toEqual([204, '958', 2]);
  // Listing costs what it says, because it only uses the cache.
  expect(leftAfter(await read('/packages'))).toBe('957');
  // So does the key of an unknown stream, in a call that costs 5 points.
  const unnamed = await read('/metrics/not-routed?stream=orders');
  expect([problemOf(unnamed), leftAfter(unnamed), lookups]).toEqual(['404 unknown_resource', '932', 3]);
});

test.each([true, false])('searching a range to replay costs 90 more points (dryRun: %s)', async dryRun => {
  const searches: string[] = [];
  const found = { events: [], tokens: 0 };
  await start({
    replays: {
      price: async () => searches.push('price') && { answer: 'OK', ...found },
      start: async () => searches.push('start') && { answer: 'NOTHING' },
    },
  });
  const range = { subscription: SUBSCRIPTION, since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z', dryRun };
  const answer = await post('/replay', range);
  expect([answer.status, leftAfter(answer)]).toEqual([dryRun ? 200 : 202, '900']);
  for (let calls = 2; calls <= 10; calls++) expect((await post('/replay', range)).status).toBeLessThan(300);
  expect(problemOf(await post('/replay', range))).toBe('429 rate_limited');
  expect(searches).toHaveLength(10);
});

test('a replay is not charged to an account that does not exist', async () => {
  const calls: string[] = [];
  const subscription = { metadata: { uid: 'u' }, spec: { producer: 'shop', integration: 'shop' } };
  const caches = { assertCurrent: () => undefined, get: () => undefined, find: async () => subscription };
  await start({ caches, replays: { start: async () => calls.push('start') } });
  const range = { subscription: SUBSCRIPTION, since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' };
  expect(problemOf(await post('/replay', range))).toBe('402 insufficient_tokens');
  expect(calls).toEqual([]);
});

test('a range that cannot be paid for is not searched, even if there are enough points for the call', async () => {
  const searches: string[] = [];
  const search = async () => searches.push('search') && { answer: 'OK', events: [], tokens: 0 };
  const recover = async (_inbox: unknown, { mayGoOn }: { mayGoOn: () => boolean }) => {
    for (let pages = 0; pages < 31; pages++) mayGoOn();
    return { answer: 'OK', recovered: 0, replayRequired: 0 };
  };
  await start({ recovery: { recover }, replays: { price: search, start: search } });
  const since = '2026-01-01T00:00:00Z';
  expect(leftAfter(await post(`/subscriptions/${SUBSCRIPTION}/recover`, { since }))).toBe('60');
  const refused = await post('/replay', { subscription: SUBSCRIPTION, since, until: '2026-01-02T00:00:00Z' });
  expect(problemOf(refused)).toBe('429 rate_limited');
  expect(refused.body).toContain('Searching a range costs 90 more points');
  expect(searches).toEqual([]);
});

test('each additional thousand recovered deliveries costs 30 points, and the call ends early without them', async () => {
  const steps: boolean[] = [];
  const recover = async (_inbox: unknown, { mayGoOn }: { mayGoOn: () => boolean }) => {
    do steps.push(mayGoOn());
    while (steps.at(-1) && steps.length % 5 !== 0);
    return { answer: 'OK', recovered: 1_000 * steps.length, replayRequired: 0 };
  };
  await start({ recovery: { recover } });
  const path = `/subscriptions/${SUBSCRIPTION}/recover`;
  const answer = await post(path, { since: '2026-01-01T00:00:00Z' });
  expect([answer.status, leftAfter(answer), steps.length]).toEqual([202, '840', 5]);
  for (let calls = 2; calls <= 6; calls++) await post(path, { since: '2026-01-01T00:00:00Z' });
  expect(steps).not.toContain(false);
  expect(leftAfter(await post(path, { since: '2026-01-01T00:00:00Z' }))).toBe('0');
  expect(steps.filter(may => !may)).toEqual([false]);
});

test('searching more than 100 streams for an event costs 10 more points for every 100 streams', async () => {
  const searched: string[] = [];
  const known = (count: number) => searchedStreams(count, searched);
  let parts = known(100);
  const list = (kind: string) => parts.caches.list(kind);
  const clock = await start({ ...parts, caches: { ...parts.caches, list } });
  const included = await search();
  expect([problemOf(included), leftAfter(included)]).toEqual(['404 unknown_event', '990']);
  parts = known(101);
  expect(leftAfter(await search())).toBe('970');
  parts = known(3_001);
  expect(leftAfter(await search())).toBe('660');
  parts = known(7_000);
  searched.length = 0;
  const refused = await search();
  expect(problemOf(refused)).toBe('429 rate_limited');
  expect(refused.body).toContain('Searching all 7000 streams costs 690 more points');
  expect(searched).toEqual([]);
  // The call itself has been charged, and costs as much again: 700 points, and 650 are left.
  expect(refused.headers['retry-after']).toBe('3');
  expect(await facade.registry.metrics()).toContain('sluice_facade_limited_total{limit="caller"} 1');
  await clock.advance(3_000);
  const retried = await search();
  expect([problemOf(retried), leftAfter(retried)]).toEqual(['404 unknown_event', '0']);
});

test('Retry-After covers all points of a call for both the caller and the account', async () => {
  const clock = await start(searchedStreams(1_000), 1_000, 120);
  expect(problemOf(await search())).toBe('404 unknown_event');
  await clock.advance(5_000);
  const refused = await search();
  expect(problemOf(refused)).toBe('429 rate_limited');
  // The account has 20 of the 100 points, and 2 points come back each second. The caller only paid for the call.
  expect([refused.headers['retry-after'], leftAfter(refused)]).toEqual(['40', '973']);
  expect(await facade.registry.metrics()).toContain('sluice_facade_limited_total{limit="account"} 1');
  await clock.advance(40_000);
  expect(problemOf(await search())).toBe('404 unknown_event');
});

test.each([10, 11, 64])('a search can be made with a limit of %s points, which it uses up', async points => {
  const clock = await start(searchedStreams(1_000), points);
  const found = await search();
  expect([problemOf(found), leftAfter(found)]).toEqual(['404 unknown_event', '0']);
  // Not enough for the call, then only enough for the call.
  for (let refusals = 0; refusals < (points === 10 ? 1 : 2); refusals++) {
    const refused = await search();
    expect(problemOf(refused)).toBe('429 rate_limited');
    await clock.advance(Number(refused.headers['retry-after']) * 1_000);
  }
  expect(problemOf(await search())).toBe('404 unknown_event');
});

test('each caller can have 16 calls that wait for events', async () => {
  let pulls = 0;
  const pull = async () => {
    pulls++;
    return { answer: 'OK', events: [], more: false };
  };
  const clock = await start({ operations: { pull } });
  const wait = (subject: string) => post('/pull', { subscription: SUBSCRIPTION, waitSeconds: 20 }, subject);
  const waiting = Array.from({ length: 16 }, () => wait('ada'));
  await vi.waitFor(() => expect(pulls).toBe(16), SOON);
  const refused = await wait('ada');
  expect(problemOf(refused)).toBe('429 rate_limited');
  expect(refused.body).toContain('You have 16 calls that wait for events, which is the limit.');
  expect(pulls).toBe(16);
  // Calls that do not wait are not affected, and other callers are not affected.
  expect((await post('/pull', { subscription: SUBSCRIPTION })).status).toBe(200);
  const other = wait('eve');
  await vi.waitFor(() => expect(pulls).toBe(18), SOON);
  await clock.advance(20_000);
  expect((await Promise.all([...waiting, other])).map(({ status }) => status)).toEqual(
    Array.from({ length: 17 }, () => 200),
  );
  const before = pulls;
  const again = wait('ada');
  await vi.waitFor(() => expect(pulls).toBe(before + 1), SOON);
  await clock.advance(20_000);
  expect((await again).status).toBe(200);
});

test('calls that wait for events are answered when the facade stops, and their connections are closed', async () => {
  let pulls = 0;
  const pull = async () => {
    pulls++;
    return { answer: 'OK', events: [], more: false };
  };
  const clock = await start({ operations: { pull } });
  const waiting = post('/pull', { subscription: SUBSCRIPTION, waitSeconds: 30 });
  await vi.waitFor(() => expect(pulls).toBe(1), SOON);
  await facade.server.close();
  const { status, headers, body } = await waiting;
  expect({ status, connection: headers.connection, body: JSON.parse(body) }).toEqual({
    status: 200,
    connection: 'close',
    body: { data: [], more: false },
  });
  expect(clock.pendingTimers()).toBe(0);
});
