import { onTestFinished } from 'vitest';
import { redisUrl } from '../../../../test/support/redis/shared.ts';
import { sealEndpoint } from '../../../core/delivery/endpoint-config.ts';
import { deriveSealKeys } from '../../../core/delivery/seal.ts';
import { connectRedis, type RedisClient } from '../../../redis/client.ts';
import { inboxMember } from '../../../redis/inbox-store.ts';
import { inboxKeys, integrationKeys } from '../../../redis/keys.ts';
import { createTenant, items, START_MS, type SubscriptionShort } from '../../../redis/testing/tenant.ts';
import { createLogger } from '../../../telemetry/log.ts';
import type { AttemptRequest, AttemptResult } from '../endpoint-client.ts';
import { createEventCache } from '../event-cache.ts';
import { createWorker, type Room } from '../worker.ts';

const log = createLogger({ level: 'silent' });
const rootKey = Buffer.alloc(32, 7);
const sealKeys = deriveSealKeys(rootKey);

export const answered = (status: number): AttemptResult => ({
  outcome: status < 300 ? 'delivered' : 'failed',
  reason: status < 300 ? 'http_2xx' : 'http_5xx',
  status,
  latencyMs: 1,
  responseBody: Buffer.alloc(0),
  truncated: false,
});

export async function connect(url = redisUrl()): Promise<RedisClient> {
  const redis = await connectRedis(url, log);
  onTestFinished(() => redis.close());
  return redis;
}

/** Creates a subscription with its state in Redis, plus a worker whose attempts are answered by the test. */
export async function start(redis: RedisClient, sub: SubscriptionShort = {}, keys = ['a', 'b', 'c']) {
  const t = createTenant(redis);
  const inbox = t.inboxOf('x');
  const configure = async (timeoutMs: number) => {
    const endpoint = sealEndpoint(sealKeys, inbox.sub, {
      url: 'http://127.0.0.1/hook',
      timeoutMs,
      retryMs: [5_000, 5_000],
      headers: {},
      secretVersion: 1,
    });
    await t.apply(t.routes({ x: { sub: { endpoint, ...sub } } }, { maxBytes: 1e9 }));
  };
  await configure(15_000);
  for (const groupKey of keys) await t.activate('x', groupKey);
  const room: Room = { free: 1_000, waiting: new Set() };
  const sent: string[] = [];
  const calls = { claim: 0, complete: 0 };
  const control = { attempt: async (_body: string): Promise<AttemptResult> => answered(204), inFlight: 0, most: 0 };
  const aborter = new AbortController();
  let turn = 0;
  const deps = {
    inboxes: {
      ...t.inboxes,
      exchange: (...args: Parameters<typeof t.inboxes.exchange>) => {
        if (args[3] !== undefined) calls.claim++;
        if (args[2].length > 0) calls.complete++;
        return t.inboxes.exchange(...args);
      },
    },
    readEvents: createEventCache(t.inboxes, 1_000_000),
    keys: { rootKey, sealKeys },
    version: '0',
    opened: new Map(),
    room,
    nextToken: () => `t${turn++}`,
    alarm: () => {},
    log,
    signal: aborter.signal,
    attempt: async (request: AttemptRequest) => {
      const body = request.body.toString();
      sent.push(body);
      control.most = Math.max(control.most, ++control.inFlight);
      try {
        return await control.attempt(body);
      } finally {
        control.inFlight--;
      }
    },
    nowMs: t.nowMs,
    wallMs: t.nowMs,
    monotonicMs: () => performance.now(),
    random: () => 0,
    onAttempt: () => {},
  };
  let n = 0;
  return {
    t,
    inbox,
    configure,
    deps,
    room,
    sent,
    calls,
    control,
    aborter,
    x: inboxKeys(inbox.integration, inbox.sub, inbox.inc),
    worker: () => createWorker(deps, inboxMember(inbox)),
    counters: async () => {
      const fields = await redis.readHash(integrationKeys(inbox.integration).sub(inbox.sub));
      return Object.fromEntries(Object.entries(fields).filter(([name]) => name.startsWith('n:')));
    },
    /** Ingests and routes one event per group key. Bodies are `<key><number>`. */
    publish: async (...groupKeys: string[]) => {
      const entries = [];
      for (const groupKey of groupKeys) entries.push(...(await t.ingest([groupKey], `${groupKey}${n++}`)));
      await t.inboxes.route(inbox, t.nowMs(), START_MS, 'gen1', '', items(entries));
    },
  };
}
