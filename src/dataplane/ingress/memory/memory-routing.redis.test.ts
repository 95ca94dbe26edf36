import { expect, onTestFinished, test } from 'vitest';
import { createTestPart, event } from '../../../../test/support/part/part.ts';
import { startRedis } from '../../../../test/support/redis/server.ts';
import { connectRedis } from '../../../redis/client.ts';
import { readRedisMemory } from '../../../redis/redis-metrics.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { INGRESS_LIMITS } from '../limits.ts';

/** Fills a Redis with events of 1 KiB, all for a paused subscription, and then resumes it. */
async function routeAll(stopRatio: number) {
  const server = await startRedis({ maxmemory: '64mb' });
  onTestFinished(() => server.stop());
  const redis = await connectRedis(server.url, createLogger({ level: 'silent' }));
  onTestFinished(() => redis.close());
  const t = createTestPart(redis);
  await t.setUp({ a: { route: 'paused' } }, ['k']);
  let stored = 0;
  while ((await readRedisMemory(redis)).usedRatio < stopRatio) {
    await t.ingest(...Array.from({ length: 64 }, () => event('k', { body: Buffer.alloc(1024, 'x') })));
    stored += 64;
  }
  const usedRatio = async () => (await readRedisMemory(redis)).usedRatio;
  const before = await usedRatio();
  await t.setRow('a', {});
  let routed = 0;
  for (;;) {
    const answer = await t.advance();
    if (answer.answer !== 'OK') throw new Error(answer.answer);
    routed += answer.references;
    if (!answer.more) return { stored, routed, neededRatio: (await usedRatio()) - before };
  }
}

test('a Redis that does not accept new events has enough memory to route all of its events', async () => {
  const { stored, routed, neededRatio } = await routeAll(INGRESS_LIMITS.memoryStopRatio);
  expect(stored).toBeGreaterThan(30_000);
  expect(routed).toBe(stored);
  // About 16 %, as documented.
  expect(neededRatio).toBeGreaterThan(0.14);
  expect(neededRatio).toBeLessThan(0.18);
});

test('a higher limit would not leave enough memory', async () => {
  await expect(routeAll(0.9)).rejects.toThrow(/^OOM /);
});
