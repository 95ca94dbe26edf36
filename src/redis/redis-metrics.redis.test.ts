import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../test/support/redis/server.ts';
import { createLogger } from '../telemetry/log.ts';
import { createRegistry, type Registry } from '../telemetry/metrics.ts';
import { connectRedis } from './client.ts';
import { createRedisMetrics, readRedisMemory, registerRedisGauges } from './redis-metrics.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const log = createLogger({ level: 'silent' });

async function valueOf(registry: Registry, line: string): Promise<number> {
  const found = (await registry.metrics()).split('\n').find(each => each.startsWith(`${line} `));
  return Number(found?.slice(line.length + 1));
}

async function start() {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const registry = createRegistry();
  const redis = await connectRedis(server.url, log, createRedisMetrics(registry));
  onTestFinished(() => redis.close());
  registerRedisGauges(registry, redis, () => Date.now() - 90_000);
  return { server, redis, value: (line: string) => valueOf(registry, line) };
}

const DURATIONS = 'sluice_redis_command_duration_seconds_count';
const errors = (reason: string) => `sluice_redis_command_errors_total{reason="${reason}"}`;

test('measures each command individually', async () => {
  const { redis, value } = await start();
  for (let i = 0; i < 5; i++) await redis.call('get', 'k');
  expect(await value(DURATIONS)).toBe(5);
  // The scrape has queried the memory usage once.
  await Promise.all(Array.from({ length: 20 }, () => redis.call('get', 'k')));
  expect(await value(DURATIONS)).toBe(7);
  expect(await value('sluice_redis_commands_total')).toBe(26);
});

test('distinguishes refused commands and an unavailable server', async () => {
  const { server, redis, value } = await start();
  await expect(redis.call('lpush', 'k', 'v')).resolves.toBe(1);
  await expect(redis.call('get', 'k')).rejects.toThrow('WRONGTYPE');
  expect(await value(errors('refused'))).toBe(1);
  // An unknown script is not a failure because it is resent with its text.
  await redis.run('hashes', ['h'], []);
  expect(await value(errors('refused'))).toBe(1);
  await redis.callAll('CONFIG', 'SET', 'maxmemory', '1');
  await expect(redis.call('set', 'l', 'v')).rejects.toThrow('OOM');
  expect(await value(errors('memory'))).toBe(1);
  expect(await value('sluice_redis_connected')).toBe(1);

  const back = new Promise<void>(resolve => redis.onReconnect(resolve));
  await server.kill();
  await expect(redis.call('get', 'k')).rejects.toThrow();
  expect(await value(errors('connection'))).toBeGreaterThan(0);
  await expect.poll(() => value('sluice_redis_connected'), SOON).toBe(0);
  await server.restart();
  await back;
  expect(await value('sluice_redis_connected')).toBe(1);
  expect(await value('sluice_redis_reconnects_total')).toBe(1);
});

test('reports how far the clock of this machine is ahead of the Redis clock', async () => {
  const { value } = await start();
  expect(await value('sluice_redis_clock_offset_seconds')).toBeCloseTo(90, 2);
});

test('reports the memory usage of Redis', async () => {
  const { redis, value } = await start();
  expect((await readRedisMemory(redis)).maxBytes).toBe(0);
  await redis.callAll('CONFIG', 'SET', 'maxmemory', `${1024 ** 3}`);
  expect(await value('sluice_redis_memory_max_bytes')).toBe(1024 ** 3);
  const used = await value('sluice_redis_memory_used_bytes');
  expect(used).toBeGreaterThan(100_000);
  expect(await value('sluice_redis_memory_used_ratio')).toBeCloseTo(used / 1024 ** 3, 6);
});
