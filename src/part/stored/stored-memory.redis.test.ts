import { afterAll, beforeAll, expect, test } from 'vitest';
import { event, START_MS, startPart } from '../../../test/support/part/part.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis/server.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { createLogger } from '../../telemetry/log.ts';
import type { Completion } from '../claims/exchange.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';

const HOUR_MS = 3_600_000;
const RETENTION_MS = 2 * HOUR_MS;
const KEYS = Array.from({ length: 50 }, (_, i) => `k${i}`);
/** The number of deliveries of each case. */
const COUNT = 1_500;

let server: RedisServer;
let redis: RedisClient;
beforeAll(async () => {
  server = await startRedis({ extra: ['--slowlog-log-slower-than', '-1'] });
  redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
  // Redis keeps the text of each script that it has run.
  for (const hasIds of [false, true]) await play({ receivers: 1, attempts: 2, hasIds }, 100);
});
afterAll(async () => {
  await redis.close();
  await server.stop();
});

/** Returns the memory that Redis uses after it has stopped changing. */
async function usedMemory(): Promise<number> {
  for (let last = 0; ; ) {
    const used = Number(/used_memory:(\d+)/.exec(String(await server.command('INFO', 'memory')))?.[1]);
    if (Math.abs(used - last) < 2_000) return used;
    last = used;
    await new Promise(resolve => setTimeout(resolve, 100));
  }
}

interface Case {
  readonly receivers: number;
  /** The number of attempts. The last one results in a dead letter. 0 if deliveries expire before. */
  readonly attempts: number;
  readonly hasIds?: boolean;
}

interface Looked {
  readonly charged: number;
  readonly stored: number;
}

/** Stores events and ends their deliveries. Returns the charged bytes and the used memory after each step. */
async function play({ receivers, attempts, hasIds }: Case, count = COUNT) {
  await server.command('FLUSHALL');
  const row = { cap: 9_000, unordered: true } as const;
  const names = Array.from({ length: receivers }, (_, i) => `s${i}`);
  const { t, d } = await startPart(redis, Object.fromEntries(names.map(name => [name, row])), KEYS);
  await t.change({ kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) });
  const empty = await usedMemory();
  const look = async (): Promise<Looked> => ({
    charged: Number((await t.hash('meta')).bytes ?? 0),
    stored: (await usedMemory()) - empty,
  });
  for (let sent = 0; sent < count / receivers; ) {
    t.clock.ms += 37;
    const events = KEYS.map((key, i) => event(key, hasIds ? { senderId: `event ${sent + i}` } : {}));
    const answer = await t.ingest(...events);
    if (answer.answer === 'OK') sent += answer.events.length;
  }

  /** Makes one attempt for each delivery. */
  async function attempt(outcome: Completion['outcome']) {
    for (let ended = 0; ended < count; t.clock.ms++) {
      for (const name of names) await t.setRow(name, { ...row, enabledMs: t.clock.ms });
      const { claims } = await d.exchange(256);
      const dueMs = t.clock.ms + 60_000;
      for (const claim of claims) d.end(claim, outcome, { reason: '500', latencyMs: 250, dueMs });
      await d.exchange(0);
      ended += claims.length;
    }
    t.clock.ms += 60_001;
  }
  const looks: Record<string, Looked> = { waiting: await look() };
  for (let number = 1; number <= attempts; number++) {
    if (number > 1) looks[`retrying after ${number - 1}`] = await look();
    await attempt(number < attempts ? 'failed' : hasIds ? 'delivered' : 'dead');
  }
  if (attempts > 0) looks.ended = await look();
  async function pass(ms: number) {
    t.clock.ms = ms;
    await sweepAll(t);
  }
  await pass(t.clock.ms + RETENTION_MS + 1);
  expect(await t.log()).toEqual([]);
  const expired = await look();
  await pass(START_MS + 40 * HOUR_MS);
  return { open: looks, expired, forgotten: await look() };
}

const CASES: readonly [string, Case, most: number][] = [
  ['ids of producers', { receivers: 1, attempts: 1, hasIds: true }, 1.3],
  ['expired deliveries', { receivers: 1, attempts: 0 }, 1.3],
  ['dead letters with 1 attempt', { receivers: 1, attempts: 1 }, 1.3],
  ['dead letters with 9 attempts', { receivers: 1, attempts: 9 }, 1.3],
  ['dead letters with 20 attempts', { receivers: 1, attempts: 20 }, 1.3],
  ['dead letters of 10 subscriptions', { receivers: 10, attempts: 4 }, 1.3],
];

test.each(CASES)(
  'the stored data is charged, and nothing afterwards: %s',
  async (_, of, most) => {
    const { expired, forgotten, open } = await play(of);
    for (const [step, { charged, stored }] of Object.entries(open)) {
      const ratio = charged / stored;
      expect([step, ratio > 0.97 ? 'enough' : ratio]).toEqual([step, 'enough']);
      // Before its first attempt, a delivery has the bytes for a retry.
      const limit = step.startsWith('waiting') ? 1.6 : 1.35;
      expect([step, ratio < limit ? 'not too many' : ratio]).toEqual([step, 'not too many']);
    }
    expect(expired.stored).toBeGreaterThan(100 * COUNT);
    expect(expired.charged / expired.stored).toBeGreaterThan(0.95);
    expect(expired.charged / expired.stored).toBeLessThan(most);
    expect(forgotten.charged).toBe(0);
    expect(forgotten.stored).toBeLessThan(0.2 * expired.stored);
  },
  120_000,
);
