import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisUrl } from '../../../test/support/redis/shared.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { inboxMember } from '../../redis/inbox-store.ts';
import { inboxKeys, integrationKeys, queueKeys } from '../../redis/keys.ts';
import { OWNER_LEASE_MS } from '../../redis/queue-store.ts';
import { createTenant, QUEUE } from '../../redis/testing/tenant.ts';
import { createLogger } from '../../telemetry/log.ts';
import { type QueueRouterDeps, routeQueue } from './queue.ts';

const HOUR_MS = 3_600_000;
const INBOXES = 200;
/** What the clock moves by at each inbox, unless said otherwise: all of them together outlast the lease several times. */
const SLOW_MS = 100;

let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

/**
 * A queue with an hour of retention and `INBOXES` subscriptions, of which `x` is active for `k`: the pass begins with it.
 * Each inbox takes its time, and tells it to the test before it answers.
 */
async function start(onExpire: (name: string, asked: number) => Promise<unknown> = async () => {}, slowMs = SLOW_MS) {
  const t = createTenant(redis);
  const names = ['x', ...Array.from({ length: INBOXES - 1 }, (_, i) => `n${i}`)];
  const events = queueKeys(t.tenant, QUEUE, 'gen1').events;
  const behind = () => redis.readHash(queueKeys(t.tenant, QUEUE).behind);
  const seen = { asked: 0, inFlight: 0, mostInFlight: 0, trims: 0, neverRouted: 0 };
  /** For each batch of the main pass: inboxes that were asked before it. */
  const batches: number[] = [];
  const deps: QueueRouterDeps = {
    queues: {
      ...t.queues,
      lookup: async (...args) => {
        const found = await t.queues.lookup(...args);
        if (found === undefined) return undefined;
        const last = (name: string) => Number(name === t.nameOf('x'));
        return { ...found, subscriptions: new Map([...found.subscriptions].toSorted(([a], [b]) => last(a) - last(b))) };
      },
      trim: (...args) => {
        seen.trims++;
        return t.queues.trim(...args);
      },
    },
    inboxes: {
      ...t.inboxes,
      expire: async (inbox, ...rest) => {
        seen.mostInFlight = Math.max(seen.mostInFlight, ++seen.inFlight);
        const answer = await t.inboxes.expire(inbox, ...rest);
        t.clock.ms += slowMs;
        await onExpire(inbox.sub.slice('sub_'.length), ++seen.asked);
        seen.inFlight--;
        return answer;
      },
    },
    ledger: t.ledger,
    owner: 'A',
    nowMs: t.nowMs,
    signal: new AbortController().signal,
    alarm: () => {},
    lower: async () => {},
    onBatch: (_batch, entries) => {
      if (entries > 0) batches.push(seen.asked);
    },
    onExpired: neverRouted => {
      seen.neverRouted += neverRouted;
    },
  };
  const trimmed = new Map<string, number>();
  const run = (more: Partial<QueueRouterDeps> = {}) => routeQueue({ ...deps, ...more }, t.queue, trimmed);
  const open = async () => Number(await redis.call('zcard', inboxKeys(t.nameOf('x'), 'sub_x', 'inc1').pending));
  const length = async () => Number(await redis.call('xlen', events));
  const say = (route: string) => {
    const { meta, sub } = integrationKeys(t.nameOf('x'));
    return t.control.patch(1, [{ meta, ops: [{ command: 'HSET', key: sub('sub_x'), args: ['route', route] }] }]);
  };
  await t.apply(t.routes(Object.fromEntries(names.map(name => [name, {}]))));
  await t.activate('x', 'k');
  return { t, deps, run, seen, batches, open, length, behind, say };
}

test('while it lasts nobody else owns the queue, however many inboxes there are; 32 are asked at once', async () => {
  const answers = new Set<string>();
  const it = await start(async () => answers.add((await it.t.queues.own(it.t.queue, it.t.nowMs(), 'B')).answer));
  await it.t.ingest(['k', 'k', 'k']);
  await it.run();
  it.t.clock.ms += HOUR_MS + 1;
  const beganMs = it.t.nowMs();
  expect(await it.run()).toBeNull();
  expect(it.t.nowMs() - beganMs).toBeGreaterThan(3 * OWNER_LEASE_MS);
  expect([...answers]).toEqual(['HELD']);
  expect([it.seen.asked, it.seen.mostInFlight, it.seen.trims]).toEqual([INBOXES, 32, 1]);
  expect([await it.open(), await it.length()]).toEqual([0, 0]);
  // Nothing more to do: another router may take the queue at once.
  expect(await it.t.queues.own(it.t.queue, it.t.nowMs(), 'B')).toMatchObject({ answer: 'OK' });
});

test('an inbox with more than one call ends is asked until it holds nothing so old', async () => {
  const it = await start();
  for (let i = 0; i < 9; i++) await it.t.ingest(Array.from({ length: 50 }, () => 'k'));
  await it.run();
  expect(await it.open()).toBe(450);
  it.t.clock.ms += HOUR_MS + 1;
  await it.run();
  expect([it.seen.asked, await it.open(), await it.length()]).toEqual([INBOXES + 2, 0, 0]);
});

describe('while it lasts', () => {
  test('what comes is routed', async () => {
    const it = await start(async (_name, asked) => asked === 1 && (await it.t.ingest(['k'])));
    await it.t.ingest(['k', 'k']);
    await it.run();
    it.t.clock.ms += HOUR_MS + 1;
    it.batches.length = 0;
    await it.run();
    expect(it.batches).toHaveLength(1);
    expect(it.batches[0]).toBeLessThan(INBOXES);
    expect([it.seen.asked, it.seen.trims, it.seen.neverRouted]).toEqual([INBOXES, 1, 0]);
    expect([await it.open(), await it.length()]).toEqual([1, 1]);
  });

  test('what is too old is not routed any more, and what came after it is once it is gone', async () => {
    const it = await start(async (_name, asked) => asked === 1 && (await it.t.ingest(['k'])));
    await it.t.ingest(['k', 'k']);
    it.t.clock.ms += HOUR_MS + 1;
    await it.run();
    expect(it.batches).toEqual([INBOXES]);
    expect(it.seen.neverRouted).toBe(2 * INBOXES);
    expect([await it.open(), await it.length()]).toEqual([1, 1]);
  });

  test('nobody is caught up with it either', async () => {
    const it = await start(async name => {
      if (name !== 'x') return;
      await it.say('open');
      await it.t.control.wake(1, it.t.tenant, QUEUE, [it.t.inboxOf('x')]);
    });
    await it.say('paused');
    await it.t.ingest(['k', 'k']);
    await it.run();
    expect(Object.keys(await it.behind())).toEqual([inboxMember(it.t.inboxOf('x'))]);
    it.t.clock.ms += HOUR_MS + 1;
    await it.run();
    expect([await it.open(), await it.length(), it.seen.neverRouted]).toEqual([0, 0, 2]);
    expect(await it.behind()).toEqual({});
  });

  test('a retention that is raised ends it: the events stay', async () => {
    const it = await start(async (_name, asked) => {
      if (asked === 40) await redis.call('hset', queueKeys(it.t.tenant, QUEUE).meta, 'retentionMs', 2 * HOUR_MS);
    });
    await it.t.ingest(['k', 'k']);
    const [oldestMs] = [it.t.nowMs(), await it.run()];
    it.t.clock.ms += HOUR_MS + 1;
    expect(await it.run()).toBe(oldestMs + 2 * HOUR_MS + 1);
    expect(it.seen.asked).toBeLessThan(INBOXES);
    expect([it.seen.trims, await it.length()]).toEqual([0, 2]);
  });

  describe('it ends where another router took the queue over, and nobody is told of a failure', () => {
    async function startLosing(moment: string) {
      const takeOver = async () => {
        await redis.call('hset', queueKeys(it.t.tenant, QUEUE).meta, 'until', 0);
        expect(await it.t.queues.own(it.t.queue, it.t.nowMs(), 'B')).toMatchObject({ answer: 'OK' });
      };
      const it = await start(
        async (_name, asked) => moment === 'it asks inboxes' && asked === 40 && (await takeOver()),
      );
      const { queues } = it.deps;
      const losing: QueueRouterDeps['queues'] = {
        ...queues,
        next: async (...args) => {
          const page = await queues.next(...args);
          if (moment === 'it renews its lease' && it.seen.asked > 0) await takeOver();
          return page;
        },
        trim: async (...args) => {
          if (moment === 'it removes events') await takeOver();
          return queues.trim(...args);
        },
      };
      return { ...it, losing };
    }

    test.each(['it asks inboxes', 'it renews its lease', 'it removes events'])('while %s', async moment => {
      const it = await startLosing(moment);
      await it.t.ingest(['k']);
      await it.run();
      it.t.clock.ms += HOUR_MS + 1;
      expect(await it.run({ queues: it.losing })).toBe(it.t.nowMs());
      expect(await it.length()).toBe(1);
      if (moment !== 'it removes events') expect(it.seen.asked).toBeLessThan(INBOXES);
      // The one who has it does it all.
      expect(await routeQueue({ ...it.deps, owner: 'B' }, it.t.queue, new Map())).toBeNull();
      expect(await it.length()).toBe(0);
    });
  });

  test('a stop gives the queue back', async () => {
    const aborter = new AbortController();
    const it = await start(async (_name, asked) => asked === 40 && aborter.abort(), 0);
    await it.t.ingest(['k']);
    await it.run();
    it.t.clock.ms += HOUR_MS + 1;
    expect(await it.run({ signal: aborter.signal })).toBe(it.t.nowMs());
    expect(it.seen.asked).toBeLessThan(INBOXES);
    expect(await it.t.queues.own(it.t.queue, it.t.nowMs(), 'B')).toMatchObject({ answer: 'OK' });
  });
});
