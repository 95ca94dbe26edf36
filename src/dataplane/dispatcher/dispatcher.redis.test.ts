import { afterEach, beforeEach, expect, test } from 'vitest';
import { type RedisServer, startRedis } from '../../../test/support/redis/server.ts';
import { sealEndpoint } from '../../core/delivery/endpoint-config.ts';
import { deriveSealKeys } from '../../core/delivery/seal.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { createHintIndex } from '../../redis/hints.ts';
import { inboxKeys, integrationKeys } from '../../redis/keys.ts';
import { createTenant, QUEUE, START_MS, type Tenant } from '../../redis/testing/tenant.ts';
import { createTrafficReader } from '../../redis/traffic-reader.ts';
import { createTrafficStore } from '../../redis/traffic-store.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { queueMember } from '../router/queue-member.ts';
import { createRouter } from '../router/router.ts';
import { FOLD_EVERY_MS } from '../traffic-folds.ts';
import { createDispatcher } from './dispatcher.ts';
import type { AttemptRequest, AttemptResult } from './endpoint-client.ts';

const log = createLogger({ level: 'silent' });
const rootKey = Buffer.alloc(32, 7);
const sealKeys = deriveSealKeys(rootKey);
const begun = performance.now();
const skew = { ms: 0 };
const nowMs = () => START_MS + Math.round(performance.now() - begun) + skew.ms;

let server: RedisServer;
let redis: RedisClient;
let ends: (() => Promise<void>)[];
beforeEach(async () => {
  server = await startRedis({ appendonly: true });
  redis = await connectRedis(server.url, log);
  ends = [];
});
afterEach(async () => {
  await Promise.all(ends.map(end => end()));
  await redis.close();
  await server.stop();
});

const delivered: AttemptResult = {
  outcome: 'delivered',
  reason: 'http_2xx',
  status: 204,
  latencyMs: 1,
  responseBody: Buffer.alloc(0),
  truncated: false,
};

function dispatcher(attempt: (body: string) => Promise<AttemptResult>, inboxes: Tenant['inboxes'], room = 64) {
  const made = createDispatcher({
    inboxes,
    hints: createHintIndex(redis, 'd'),
    traffic: createTrafficStore(redis),
    client: { attempt: (request: AttemptRequest) => attempt(request.body.toString()), close: async () => {} },
    keys: { rootKey, sealKeys },
    version: '0',
    alarm: () => {},
    nowMs,
    log,
    registry: createRegistry(),
    room,
  });
  redis.onReconnect(made.onReconnect);
  made.start();
  return made;
}

function router(t: Tenant) {
  const made = createRouter({
    queues: t.queues,
    inboxes: t.inboxes,
    ledger: t.ledger,
    traffic: createTrafficStore(redis),
    queueHints: createHintIndex(redis, 'r'),
    inboxHints: createHintIndex(redis, 'd'),
    alarm: () => {},
    nowMs,
    log,
    registry: createRegistry(),
  });
  redis.onReconnect(made.onReconnect);
  made.start();
  ends.push(made.stop);
}

async function start(keys: readonly string[]) {
  const t = createTenant(redis);
  Object.defineProperty(t.clock, 'ms', { get: nowMs });
  const endpoint = sealEndpoint(sealKeys, 'sub_x', {
    url: 'http://127.0.0.1/hook',
    timeoutMs: 15_000,
    retryMs: [200],
    headers: {},
    secretVersion: 1,
  });
  await t.apply(t.routes({ x: { sub: { endpoint } } }, { maxBytes: 1e9 }));
  for (const key of keys) await t.activate('x', key);
  router(t);
  let n = 0;
  const x = inboxKeys(t.nameOf('x'), 'sub_x', 'inc1');
  return {
    t,
    /** As ingress does: the hint is lowered after. A body is `<key>:<number>`. */
    publish: async (key: string) => {
      await t.ingest([key], `${key}:${n++}`);
      await createHintIndex(redis, 'r').lower([{ member: queueMember(t.tenant, QUEUE), dueMs: nowMs() }]);
    },
    open: () => redis.call('zcard', x.pending).catch(() => -1),
    counters: async () => {
      const fields = await redis.readHash(integrationKeys(t.nameOf('x')).sub('sub_x'));
      return [fields['n:routed'], fields['n:delivered']];
    },
  };
}

test('from ingress to the endpoint, with Redis killed in between: all delivered, each key in order, none twice', async () => {
  const keys = ['a', 'b', 'c', 'd', 'e'];
  const got: string[] = [];
  const { t, publish, open, counters } = await start(keys);
  const { stop } = dispatcher(async body => {
    await new Promise(resolve => setTimeout(resolve, 3));
    got.push(body);
    return delivered;
  }, t.inboxes);
  ends.push(stop);
  let accepted = 0;
  for (let i = 0; i < 150; i++) {
    if (i === 60 || i === 110) {
      await server.kill();
      await server.restart();
      await expect.poll(() => redis.isReady(), { timeout: 5_000 }).toBe(true);
    }
    await publish(keys[i % keys.length] as string);
    accepted++;
  }
  // Claims whose answer was lost are free again when their lease has passed.
  await expect
    .poll(
      async () => {
        if ((await counters())[0] !== String(accepted)) return 'not all routed';
        skew.ms += 2_000;
        return open();
      },
      { timeout: 20_000, interval: 100 },
    )
    .toBe(0);
  expect(await counters()).toEqual(['150', '150']);
  for (const key of keys) {
    const mine = [...new Set(got)].filter(body => body.startsWith(key)).map(body => Number(body.split(':')[1]));
    expect(mine).toEqual(Array.from({ length: 30 }, (_, i) => i * 5 + keys.indexOf(key)));
  }
  expect(got).toHaveLength(150);
  // What router and dispatcher counted reaches the producer's series by their hints alone.
  skew.ms += FOLD_EVERY_MS;
  const reader = createTrafficReader(redis);
  const series = async () => {
    const sum = { eventsIn: 0, deliveries: 0, failures: 0, notRouted: 0, tokens: 0 };
    for (const bucket of await reader.readSeries(t.tenant, '24h', nowMs())) {
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += bucket[name];
    }
    return sum;
  };
  const all = { eventsIn: 150, deliveries: 150, failures: 0, notRouted: 0, tokens: 150 };
  await expect.poll(series, { timeout: 20_000, interval: 50 }).toEqual(all);
});

test('what a dispatcher leaves when it stops is found by the next one at once', async () => {
  const { t, publish, open } = await start(['a', 'b', 'c']);
  const first = Promise.withResolvers<void>();
  const held = Promise.withResolvers<AttemptResult>();
  const one = dispatcher(
    () => {
      first.resolve();
      return held.promise;
    },
    t.inboxes,
    1,
  );
  for (const key of ['a', 'b', 'c', 'a']) await publish(key);
  await first.promise;
  const stopping = one.stop();
  held.resolve(delivered);
  await stopping;
  const got: string[] = [];
  const two = dispatcher(async body => {
    got.push(body);
    return delivered;
  }, t.inboxes);
  ends.push(two.stop);
  // Far less than the lease of a hint: nothing was lost that only its lapse would bring back.
  await expect.poll(open, { timeout: 3_000 }).toBe(0);
  expect(got.length).toBe(3);
});

test('a pause holds what lies in the inbox, and opening it is enough', async () => {
  const { t, publish, open } = await start(['a']);
  const got: string[] = [];
  const { stop } = dispatcher(async body => {
    got.push(body);
    return delivered;
  }, t.inboxes);
  ends.push(stop);
  const { meta, sub } = integrationKeys(t.nameOf('x'));
  const send = (to: string) =>
    t.control.patch(1, [{ meta, ops: [{ command: 'HSET', key: sub('sub_x'), args: ['send', to] }] }]);
  await send('held');
  await publish('a');
  await expect.poll(open).toBe(1);
  await expect.poll(() => redis.call('zcard', '{d:0}:due')).toBe(0);
  const before = redis.commandsSent();
  await new Promise(resolve => setTimeout(resolve, 300));
  // Sweeps only: nothing asks again and again whether it may go on.
  expect(redis.commandsSent() - before).toBeLessThan(40);
  expect(got).toEqual([]);
  await send('open');
  await createHintIndex(redis, 'd').lower([{ member: `${t.nameOf('x')}/sub_x.inc1`, dueMs: nowMs() }]);
  await expect.poll(open).toBe(0);
  expect(got).toEqual(['a:0']);
});
