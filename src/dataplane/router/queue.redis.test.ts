import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { refOfStreamId } from '../../core/ids/refs.ts';
import { dispositionOf } from '../../core/routing/event-disposition.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import type { Hint } from '../../redis/hints.ts';
import { inboxMember } from '../../redis/inbox-store.ts';
import { bucketOf, inboxKeys, integrationKeys, queueKeys, tenantKeys } from '../../redis/keys.ts';
import { OWNER_LEASE_MS } from '../../redis/queue-store.ts';
import { createRoutingReader } from '../../redis/routing-reader.ts';
import { createTenant, QUEUE, START_MS, type Tenant } from '../../redis/testing/tenant.ts';
import { createLogger } from '../../telemetry/log.ts';
import type { QueueRouterDeps } from './queue.ts';
import { routeQueue } from './queue.ts';

const HOUR_MS = 3_600_000;
let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

function start(change: Partial<QueueRouterDeps> = {}) {
  const t = createTenant(redis);
  const alarms: string[] = [];
  const hints: Hint[] = [];
  const trimmed = new Map<string, number>();
  const deps: QueueRouterDeps = {
    queues: t.queues,
    inboxes: t.inboxes,
    ledger: t.ledger,
    owner: 'A',
    nowMs: t.nowMs,
    signal: new AbortController().signal,
    alarm: slot => alarms.push(slot),
    lower: async lowered => {
      hints.push(...lowered);
    },
    onBatch: () => {},
    ...change,
  };
  const run = (more: Partial<QueueRouterDeps> = {}) => routeQueue({ ...deps, ...more }, t.queue, trimmed);
  const inbox = async (name: string) =>
    ((await redis.call('zrange', inboxKeys(t.nameOf(name), `sub_${name}`, 'inc1').pending, 0, -1)) as string[]).length;
  const behind = () => redis.readHash(queueKeys(t.tenant, QUEUE).behind);
  return { t, deps, alarms, hints, run, inbox, behind };
}

const say = (t: Tenant, name: string, route: string) => {
  const { meta, sub } = integrationKeys(t.nameOf(name));
  return t.control.patch(1, [{ meta, ops: [{ command: 'HSET', key: sub(`sub_${name}`), args: ['route', route] }] }]);
};

test('routes to who subscribes and is active, tells the dispatchers, and is due again when the oldest expires', async () => {
  const { t, hints, run, inbox } = start();
  await t.apply(t.routes({ x: {}, y: {} }));
  await t.activate('x', 'k');
  await t.ingest(['k', 'other', 'k']);
  expect(await run()).toBe(START_MS + HOUR_MS + 1);
  expect([await inbox('x'), await inbox('y')]).toEqual([2, 0]);
  expect(new Set(hints.map(({ member }) => member))).toEqual(new Set([inboxMember(t.inboxOf('x'))]));
  // Nothing more to do: another router may take the queue at once.
  expect(await t.queues.own(t.queue, t.nowMs(), 'B')).toMatchObject({ answer: 'OK' });
});

test('an empty queue is never due', async () => {
  const { t, run } = start();
  await t.apply(t.routes({}));
  expect(await run()).toBeNull();
});

test("another's queue is looked at again when its lease ends", async () => {
  const { t, run } = start();
  await t.apply(t.routes({}));
  await t.own('B');
  expect(await run()).toBe(START_MS + OWNER_LEASE_MS);
});

describe('missing is closed, and said', () => {
  test('the queue', async () => {
    const { t, alarms, run } = start();
    expect(await run()).toBe(START_MS + 1_000);
    expect(alarms).toEqual([`q:${t.tenant}:${QUEUE}`]);
  });

  test('the tenant: the queue holds', async () => {
    const { t, alarms, run } = start();
    await t.apply(t.routes({ x: {} }));
    await t.activate('x', 'k');
    await t.ingest(['k']);
    await redis.call('hdel', tenantKeys(t.tenant).meta, 'ready');
    expect(await run()).toBe(START_MS + 1_000);
    expect(alarms).toEqual([`t:${t.tenant}`]);
    expect(await redis.call('hget', queueKeys(t.tenant, QUEUE).meta, 'cur')).toBeNull();
  });

  test('an integration: it stays behind, the others go on, and it is tried again', async () => {
    const { t, alarms, run, inbox, behind } = start();
    await t.apply(t.routes({ x: {}, y: {} }));
    for (const name of ['x', 'y']) await t.activate(name, 'k');
    await t.ingest(['k', 'k']);
    const { meta } = integrationKeys(t.nameOf('x'));
    await redis.call('hdel', meta, 'ready');
    expect(await run()).toBe(START_MS + 1_000);
    expect(alarms).toContain(`i:${t.nameOf('x')}`);
    expect([await inbox('x'), await inbox('y')]).toEqual([0, 2]);
    await redis.call('hset', meta, 'ready', '1');
    t.clock.ms += 1_000;
    await run();
    expect([await inbox('x'), await behind()]).toEqual([2, {}]);
  });
});

describe('a blocked subscription', () => {
  test('is asked once a batch at most, and not at all while it is behind; nobody else waits', async () => {
    const { t, deps, run, inbox, behind } = start();
    await t.apply(t.routes({ x: { sub: { route: 'paused' } }, y: {} }));
    for (const name of ['x', 'y']) await t.activate(name, 'k');
    let asked = 0;
    const inboxes = {
      ...deps.inboxes,
      route: (...args: Parameters<typeof deps.inboxes.route>) => {
        if (args[0].sub === 'sub_x') asked++;
        return deps.inboxes.route(...args);
      },
    };
    for (let i = 0; i < 4; i++) {
      await t.ingest(['k', 'k']);
      await run({ inboxes, batchEvents: 1 });
    }
    expect([asked, await inbox('y')]).toEqual([1, 8]);
    expect(await behind()).toEqual({ [inboxMember(t.inboxOf('x'))]: '0-0' });
  });

  test('many of them are caught up as one cohort, each from where it stood', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const { t, run, inbox, behind } = start();
    await t.apply(t.routes(Object.fromEntries(names.map(name => [name, {}]))));
    for (const name of names) await t.activate(name, 'k');
    for (const name of names) {
      await t.ingest(['k', 'k', 'k']);
      await run({ batchEvents: 2 });
      await say(t, name, 'paused');
    }
    await t.ingest(['k']);
    await run();
    expect(await Promise.all(names.map(inbox))).toEqual([3, 6, 9, 12]);
    for (const name of names) await say(t, name, 'open');
    await t.control.wake(
      1,
      t.tenant,
      QUEUE,
      names.map(name => t.inboxOf(name)),
    );
    await run({ batchEvents: 2 });
    expect(await Promise.all(names.map(inbox))).toEqual([13, 13, 13, 13]);
    expect(await behind()).toEqual({});
  });

  test('that closes lets go of the queue: it can drain', async () => {
    const { t, run, behind } = start();
    await t.apply(t.routes({ x: { sub: { route: 'paused' } } }));
    await t.activate('x', 'k');
    await t.ingest(['k']);
    await run();
    expect((await t.control.readDrain(t.tenant, QUEUE)).unrouted).toBe(1);
    const plan = await t.apply(t.routes({}));
    await t.control.wake(1, t.tenant, QUEUE, plan.opened);
    await run();
    expect(await behind()).toEqual({});
    expect(await t.control.readDrain(t.tenant, QUEUE)).toEqual({ unrouted: 0, open: 0 });
  });
});

test('a batch makes 20,000 references at most, from the first one on', async () => {
  const { t, deps, run } = start();
  const names = Array.from({ length: 400 }, (_, i) => `s${i}`);
  await t.apply(t.routes(Object.fromEntries(names.map(name => [name, {}]))));
  const batches: number[] = [];
  await t.ingest(Array.from({ length: 60 }, () => 'k'));
  await t.ingest(Array.from({ length: 60 }, () => 'k'));
  await run({ ...deps, onBatch: (_batch, entries) => batches.push(entries) });
  expect(batches).toEqual([50, 50, 20]);
});

describe('retention', () => {
  test('ends references first, then removes the events; what is younger stays', async () => {
    const { t, run, inbox } = start();
    await t.apply(t.routes({ x: {} }));
    await t.activate('x', 'k');
    await t.ingest(['k', 'k']);
    await run();
    t.clock.ms += HOUR_MS - 5;
    await t.ingest(['k']);
    expect(await run()).toBe(START_MS + HOUR_MS + 1);
    t.clock.ms += 6;
    expect(await run()).toBe(START_MS + HOUR_MS - 5 + HOUR_MS + 1);
    expect(await inbox('x')).toBe(1);
    expect(await redis.call('xlen', queueKeys(t.tenant, QUEUE, 'gen1').bodies)).toBe(1);
    const fields = await redis.readHash(integrationKeys(t.nameOf('x')).sub('sub_x'));
    expect(fields).toMatchObject({ 'n:routed': '3', 'n:expired': '2' });
  });

  test('costs nothing while nothing is too old, and is looked for once a minute at most', async () => {
    const { t, deps, run } = start();
    await t.apply(t.routes({ x: {} }));
    await t.activate('x', 'k');
    let expired = 0;
    const inboxes = {
      ...deps.inboxes,
      expire: (...args: Parameters<typeof deps.inboxes.expire>) => {
        expired++;
        return deps.inboxes.expire(...args);
      },
    };
    for (let i = 0; i < 10; i++) {
      await t.ingest(['k']);
      await run({ inboxes });
      t.clock.ms += 1_000;
    }
    expect(expired).toBe(0);
    t.clock.ms += HOUR_MS - 9_000;
    for (let i = 0; i < 9; i++) {
      t.clock.ms += 1_000;
      await t.ingest(['k']);
      await run({ inboxes });
    }
    expect(expired).toBe(1);
  });
});

test('on a stop nothing is committed that was not, and another router may take the queue at once', async () => {
  const aborter = new AbortController();
  const { t, deps, run, inbox } = start();
  await t.apply(t.routes({ x: {} }));
  await t.activate('x', 'k');
  await t.ingest(['k', 'k']);
  const route: typeof deps.inboxes.route = (...args) => {
    aborter.abort();
    return deps.inboxes.route(...args);
  };
  expect(await run({ inboxes: { ...deps.inboxes, route }, signal: aborter.signal })).toBe(t.nowMs());
  expect(await redis.call('hget', queueKeys(t.tenant, QUEUE).meta, 'cur')).toBeNull();
  await run({ owner: 'B' });
  expect(await inbox('x')).toBe(2);
  expect(await redis.call('hget', queueKeys(t.tenant, QUEUE).meta, 'cur')).not.toBeNull();
});

test('who did not get an event is told of each subscriber, in as little memory however many there are', async () => {
  const { t, run } = start();
  const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
  await t.apply(t.routes(Object.fromEntries(names.map(name => [name, {}]))));
  await t.activate('n0', 'k');
  const [event] = await t.ingest(['k']);
  await run();
  const ref = refOfStreamId((event as { id: string }).id);
  const why = queueKeys(t.tenant, QUEUE).why(bucketOf(START_MS));
  expect(await redis.call('hstrlen', why, ref)).toBeLessThan(8);
  const reader = createRoutingReader(redis, t.nowMs);
  const { cursor } = await reader.readQueue(t.tenant, QUEUE);
  const disposition = async (name: string) => {
    const read = await reader.readDisposition(t.tenant, QUEUE, t.nameOf(name), { ref, groupKey: 'k' });
    const facts = { id: (event as { id: string }).id, groupKey: 'k', cursor, nowMs: t.nowMs(), ...read };
    const { disposition: is, reason } = dispositionOf({ ...facts, integration: 'active' });
    return [is, reason];
  };
  expect(await disposition('n0')).toEqual(['routed', undefined]);
  for (const name of names.slice(1)) expect(await disposition(name)).toEqual(['not_routed', 'not_activated']);
  const counted = await redis.readHash(queueKeys(t.tenant, QUEUE).traffic(Math.floor(START_MS / HOUR_MS)));
  expect(counted).toMatchObject({ 'r:not_activated': '299', routed: '1' });
});
