import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type RedisServer, startRedis } from '../../../test/support/redis/server.ts';
import { tokensOf } from '../../core/events/tokens.ts';
import { refOfStreamId } from '../../core/ids/refs.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { createHintIndex } from '../../redis/hints.ts';
import type { InboxStore } from '../../redis/inbox-store.ts';
import { BUCKET_MS, inboxKeys, integrationKeys, queueKeys } from '../../redis/keys.ts';
import { createTenant, event, QUEUE, START_MS, type Tenant } from '../../redis/testing/tenant.ts';
import { createTrafficReader } from '../../redis/traffic-reader.ts';
import { createTrafficStore } from '../../redis/traffic-store.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { FOLD_EVERY_MS } from '../traffic-folds.ts';
import { queueMember } from './queue-member.ts';
import { createRouter } from './router.ts';

const log = createLogger({ level: 'silent' });

// A Redis of its own: routers take any queue whose hint they find.
let server: RedisServer;
let redis: RedisClient;
beforeAll(async () => {
  server = await startRedis();
  redis = await connectRedis(server.url, log);
});
afterAll(async () => {
  await redis.close();
  await server.stop();
});

/** A seeded generator (mulberry32): a failure can be had again. */
function randomOf(seed: number): (below: number) => number {
  return below => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** A clock that runs, and can be put forward. */
function startClock(t: Tenant) {
  const begun = performance.now();
  const clock = { skewMs: 0, nowMs: () => START_MS + Math.round(performance.now() - begun) + clock.skewMs };
  Object.defineProperty(t.clock, 'ms', { get: clock.nowMs });
  return clock;
}

/** Verbs that work until the process dies: then nothing is answered, nor done, any more. */
function mortal<T extends object>(verbs: T, life: { left: number; dead: () => void }): T {
  const wrapped = Object.entries(verbs).map(([name, verb]) => [
    name,
    typeof verb !== 'function'
      ? verb
      : (...args: unknown[]) => {
          if (life.left <= 0) return new Promise(() => {});
          if (--life.left === 0) life.dead();
          return (verb as (...all: unknown[]) => unknown)(...args);
        },
  ]);
  return Object.fromEntries(wrapped) as T;
}

function start(t: Tenant, nowMs: () => number, calls = Number.POSITIVE_INFINITY, inboxes: Partial<InboxStore> = {}) {
  const dead = Promise.withResolvers<void>();
  const life = { left: calls, dead: dead.resolve };
  const router = createRouter({
    queues: mortal(t.queues, life),
    inboxes: mortal({ ...t.inboxes, ...inboxes }, life),
    ledger: mortal(t.ledger, life),
    traffic: mortal(createTrafficStore(redis), life),
    queueHints: { ...mortal(createHintIndex(redis, 'r'), life), listen: () => {} },
    inboxHints: mortal(createHintIndex(redis, 'd'), life),
    alarm: () => {},
    nowMs,
    log,
    registry: createRegistry(),
  });
  router.start();
  const kill = () => {
    life.left = 0;
  };
  return { router, dead: dead.promise, kill };
}

const lowerHint = (t: Tenant, dueMs: number) =>
  createHintIndex(redis, 'r').lower([{ member: queueMember(t.tenant, QUEUE), dueMs }]);

async function idsOf(key: string): Promise<string[]> {
  return ((await redis.call('xrange', key, '-', '+')) as [string][]).map(([id]) => id);
}

async function routed(t: Tenant): Promise<void> {
  const q = queueKeys(t.tenant, QUEUE, 'gen1');
  const tail = (await idsOf(q.events)).at(-1);
  const done = async () =>
    (await redis.call('hget', q.meta, 'cur')) === tail &&
    (await redis.call('hlen', q.behind)) === 0 &&
    (await redis.call('scard', q.wake)) === 0;
  await expect.poll(done, { timeout: 20_000, interval: 20 }).toBe(true);
}

const inboxOf = (t: Tenant, name: string) => idsOf(inboxKeys(t.nameOf(name), `sub_${name}`, 'inc1').log);

async function counters(t: Tenant): Promise<Record<string, number>> {
  const hours = [0, 1, 2].map(hour => queueKeys(t.tenant, QUEUE).traffic(Math.floor(START_MS / 3_600_000) + hour));
  const sum: Record<string, number> = {};
  for (const hour of hours) {
    for (const [name, by] of Object.entries(await redis.readHash(hour))) sum[name] = (sum[name] ?? 0) + Number(by);
  }
  return sum;
}

test('2,000 events and twenty dead routers: each is routed once, in order, and counted once', async () => {
  const random = randomOf(7);
  const t = createTenant(redis);
  const clock = startClock(t);
  await t.apply(t.routes({ x: {}, y: {}, z: { sub: { route: 'paused' } } }, { maxBytes: 1e12 }));
  const keys = ['k0', 'k1', 'k2', 'k3', 'nobody', ''];
  const active: Record<string, string[]> = { x: ['k0', 'k1', 'k2', 'k3'], y: ['k0', 'k1'], z: ['k2'] };
  for (const [name, open] of Object.entries(active)) for (const key of open) await t.activate(name, key);
  const config = (await t.ingress.readQueue(t.tenant, QUEUE)) as never;

  const accepted: { id: string; key: string; bytes: number }[] = [];
  async function publish(count: number): Promise<void> {
    const batch = Array.from({ length: count }, () => ({
      key: keys[random(keys.length)] as string,
      body: Buffer.alloc(random(20) === 0 ? 20_000 : 10),
    }));
    const events = batch.map(({ key, body }, i) =>
      event(`e${accepted.length + i}`, key === '' ? undefined : key, body),
    );
    await t.ingress.ingest(t.tenant, QUEUE, config, events);
    for (const { key, body } of batch) accepted.push({ id: '', key, bytes: body.length });
    await lowerHint(t, clock.nowMs());
  }

  for (let died = 0; died < 20; died++) {
    await publish(50);
    const { dead, kill } = start(t, clock.nowMs, 5 + random(60));
    await publish(50);
    // One that has nothing more to do dies idle.
    await Promise.race([dead, new Promise(resolve => setTimeout(resolve, 300))]);
    kill();
    if (died === 9) {
      const { meta, sub } = integrationKeys(t.nameOf('z'));
      const ops = [{ command: 'HSET' as const, key: sub('sub_z'), args: ['route', 'open'] }];
      await t.control.patch(1, [{ meta, ops }]);
      await t.control.wake(1, t.tenant, QUEUE, [t.inboxOf('z')]);
    }
    clock.skewMs += 6_000;
  }
  await lowerHint(t, clock.nowMs());
  const { router } = start(t, clock.nowMs);
  onTestFinished(() => router.stop());
  await routed(t);

  const ids = await idsOf(queueKeys(t.tenant, QUEUE, 'gen1').events);
  expect(ids).toHaveLength(2_000);
  const expected: Record<string, number> = { in: 2_000, bytes: 0, routed: 0, tokens: 0, notRouted: 0 };
  const count = (name: string, by = 1) => {
    expected[name] = (expected[name] ?? 0) + by;
  };
  for (const { key, bytes } of accepted) {
    count('bytes', bytes);
    const takers = Object.values(active).filter(open => open.includes(key)).length;
    count('routed', takers);
    count('tokens', takers * tokensOf(bytes));
    if (takers === 0) count('notRouted');
    if (key === '') count('r:missing_group_key');
    else count('r:not_activated', 3 - takers);
  }
  for (const [name, open] of Object.entries(active)) {
    const mine = ids.filter((_id, i) => open.includes(accepted[i]?.key as string));
    expect([name, await inboxOf(t, name)]).toEqual([name, mine]);
  }
  expect(await counters(t)).toEqual(expected);

  // The producer's series says the same, once the last router has brought it there: nothing that a dead one counted is lost.
  clock.skewMs += FOLD_EVERY_MS;
  const { in: eventsIn, bytes, notRouted } = expected;
  const series = async () => {
    const sum = { eventsIn: 0, bytes: 0, notRouted: 0 };
    for (const bucket of await createTrafficReader(redis).readSeries(t.tenant, '24h', clock.nowMs())) {
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += bucket[name];
    }
    return sum;
  };
  await expect.poll(series, { timeout: 20_000, interval: 50 }).toEqual({ eventsIn, bytes, notRouted });

  // Why an event did not go where: for each but those without a key, and complete, whoever caught it up.
  const buckets = [0, 1].map(i => queueKeys(t.tenant, QUEUE).why(Math.floor(START_MS / BUCKET_MS) + i));
  const why = Object.assign({}, ...(await Promise.all(buckets.map(redis.readHash)))) as Record<string, string>;
  for (const [i, id] of ids.entries()) {
    const key = accepted[i]?.key as string;
    const refused = Object.keys(active).filter(name => key !== '' && active[name]?.includes(key) === false);
    const stored = (why[refOfStreamId(id)] ?? '').split(',').filter(each => each !== '');
    expect(stored.toSorted()).toEqual(refused.map(name => `${t.nameOf(name)}:a`).toSorted());
  }
});

describe("one integration's slot is away", () => {
  const twoIntegrations = async () => {
    const t = createTenant(redis);
    const clock = startClock(t);
    await t.apply(t.routes({ x: {}, y: {} }, { maxBytes: 1e9 }));
    for (const name of ['x', 'y']) await t.activate(name, 'k');
    return { t, clock };
  };

  test('it stays behind, and is caught up by itself when it answers again', async () => {
    const { t, clock } = await twoIntegrations();
    let away = true;
    const route: InboxStore['route'] = async (inbox, ...rest) => {
      const answer = await t.inboxes.route(inbox, ...rest);
      // Done, but the answer is lost.
      if (away && inbox.sub === 'sub_y') throw new Error('Command timed out');
      return answer;
    };
    const { router } = start(t, clock.nowMs, Number.POSITIVE_INFINITY, { route });
    onTestFinished(() => router.stop());
    for (let i = 0; i < 10; i++) {
      await t.ingest(Array.from({ length: 30 }, () => 'k'));
      await lowerHint(t, clock.nowMs());
      router.onReconnect();
    }
    await expect.poll(async () => (await inboxOf(t, 'x')).length, { timeout: 5_000 }).toBe(300);
    expect(await redis.call('hlen', queueKeys(t.tenant, QUEUE).behind)).toBe(1);
    away = false;
    await routed(t);
    const ids = await idsOf(queueKeys(t.tenant, QUEUE, 'gen1').events);
    expect(await inboxOf(t, 'y')).toEqual(ids);
    expect(await counters(t)).toMatchObject({ in: 300, routed: 600, tokens: 600 });
  });

  test('one that does not answer at all holds the others for 2 s, not for its own timeout', async () => {
    const { t, clock } = await twoIntegrations();
    const route: InboxStore['route'] = (inbox, ...rest) =>
      inbox.sub === 'sub_y' ? new Promise(() => {}) : t.inboxes.route(inbox, ...rest);
    await t.ingest(['k', 'k']);
    await lowerHint(t, clock.nowMs());
    const { router } = start(t, clock.nowMs, Number.POSITIVE_INFINITY, { route });
    await expect.poll(() => redis.call('hlen', queueKeys(t.tenant, QUEUE).behind), { timeout: 4_000 }).toBe(1);
    expect(await inboxOf(t, 'x')).toHaveLength(2);
    const stopped = router.stop();
    clock.skewMs += 60_000;
    await lowerHint(t, clock.nowMs());
    const other = start(t, clock.nowMs);
    onTestFinished(() => other.router.stop());
    await routed(t);
    expect(await inboxOf(t, 'y')).toHaveLength(2);
    await stopped;
  });
});

test('two routers share the queues: each event goes once, whoever is faster', async () => {
  const tenants = Array.from({ length: 8 }, () => createTenant(redis));
  const clock = startClock(tenants[0] as Tenant);
  for (const t of tenants.slice(1)) Object.defineProperty(t.clock, 'ms', { get: clock.nowMs });
  for (const t of tenants) {
    await t.apply(t.routes({ x: {} }));
    await t.activate('x', 'k');
  }
  const routers = [0, 1].map(() => start(tenants[0] as Tenant, clock.nowMs).router);
  onTestFinished(async () => {
    await Promise.all(routers.map(router => router.stop()));
  });
  for (let i = 0; i < 5; i++) {
    for (const t of tenants) {
      await t.ingest(['k', 'k', 'k']);
      await lowerHint(t, clock.nowMs());
    }
    for (const router of routers) router.onReconnect();
  }
  for (const t of tenants) {
    await routed(t);
    expect(await inboxOf(t, 'x')).toEqual(await idsOf(queueKeys(t.tenant, QUEUE, 'gen1').events));
    expect(await counters(t)).toMatchObject({ in: 15, routed: 15 });
  }
});
