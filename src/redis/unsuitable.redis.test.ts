import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type RedisOptions, type RedisServer, startRedis } from '../../test/support/redis/server.ts';
import { createLogger } from '../telemetry/log.ts';
import { type LateRedis, openRedis } from './late-client.ts';
import type { NamedScript } from './named-scripts.ts';

const SOON = { timeout: 20_000, interval: 100 };
const log = createLogger({ level: 'silent' });
const WRITE: NamedScript = {
  name: 'test',
  source: "#!lua\nreturn redis.call('RPUSH', KEYS[1], ARGV[1])",
  keys: ['list'],
  listedKeys: undefined,
  args: ['value'],
  takesMore: false,
};

async function start(options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startRedis(options);
  onTestFinished(server.stop);
  return server;
}

function open(url: string): LateRedis {
  const redis = openRedis({ url, log, checkSettingsEveryMs: 500 });
  onTestFinished(() => redis.close());
  return redis;
}

const write = ({ client }: LateRedis) => client.runNamed(WRITE, { keys: { list: 'l' }, args: { value: 'v' } });
const messageOf = (redis: LateRedis) => redis.impairments()[0]?.message ?? '';
const reasonsOf = (redis: LateRedis) => redis.impairments().map(({ reason, cause }) => `${reason}/${cause}`);

test('does not use a replica until it is a master', async () => {
  const master = await start();
  const replica = await start({ extra: ['--replicaof', '127.0.0.1', `${master.port}`] });
  const redis = open(replica.url);
  await expect.poll(() => messageOf(redis), SOON).toContain('set SLUICE_REDIS_URL to the address of the master');
  expect(reasonsOf(redis)).toEqual(['RedisUnsuitable/settings']);
  await replica.command('REPLICAOF', 'NO', 'ONE');
  await redis.opened;
  expect(await write(redis)).toBe(1);
  expect(redis.impairments()).toEqual([]);
});

test('reports a master that became a replica until it is a master again', async () => {
  const [server, other] = [await start(), await start()];
  const redis = open(server.url);
  await redis.opened;
  await server.command('REPLICAOF', '127.0.0.1', other.port);
  await expect(write(redis)).rejects.toThrow('READONLY');
  expect(messageOf(redis)).toContain('set SLUICE_REDIS_URL to the address of the master');
  await server.command('REPLICAOF', 'NO', 'ONE');
  await expect.poll(() => write(redis).catch(String), SOON).toBe(1);
  await expect.poll(() => redis.impairments(), SOON).toEqual([]);
});

test('reconnects to a replica about once a second, even if there are many writes', async () => {
  const [server, other] = [await start(), await start()];
  const redis = open(server.url);
  await redis.opened;
  let reconnects = 0;
  redis.client.onReconnect(() => reconnects++);
  await server.command('REPLICAOF', '127.0.0.1', other.port);
  const untilMs = performance.now() + 3_000;
  while (performance.now() < untilMs) {
    await write(redis).catch(() => {});
    await delay(20);
  }
  expect(reconnects).toBeGreaterThan(0);
  expect(reconnects).toBeLessThan(6);
});

test('reports a master that rejects writes until it accepts one', async () => {
  const server = await start();
  const redis = open(server.url);
  await redis.opened;
  await server.command('CONFIG', 'SET', 'min-replicas-to-write', 1);
  await expect(write(redis)).rejects.toThrow('NOREPLICAS');
  expect(redis.impairments()).toEqual([
    {
      reason: 'RedisUnavailable',
      cause: 'dependency',
      message: `Redis at ${server.url} (SLUICE_REDIS_URL) rejects writes: NOREPLICAS Not enough good replicas to write. Repair or add replicas, or change min-replicas-to-write.`,
    },
  ]);
  await server.command('CONFIG', 'SET', 'min-replicas-to-write', 0);
  expect(await write(redis)).toBe(1);
  expect(redis.impairments()).toEqual([]);
});

test('reports settings that become unsafe, without ceasing to be ready, until they are correct', async () => {
  const server = await start();
  const redis = open(server.url);
  await redis.opened;
  await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
  await expect.poll(() => messageOf(redis), SOON).toContain('maxmemory-policy is allkeys-lru');
  expect(reasonsOf(redis)).toEqual(['RedisUnsuitable/dependency']);
  expect(await write(redis)).toBe(1);
  await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  await expect.poll(() => redis.impairments(), SOON).toEqual([]);
  const lazily = 'lazyfree-lazy-expire';
  await server.command('CONFIG', 'SET', lazily, 'no');
  await expect.poll(() => server.command('CONFIG', 'GET', lazily), SOON).toEqual([lazily, 'yes']);
});

test('warns once that only the first of several servers is used, no matter how often it connects', async () => {
  const [first, second] = [await start(), await start()];
  await first.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
  const lines: string[] = [];
  const redis = openRedis({
    url: `${first.url},${second.url}`,
    log: createLogger({ level: 'warn' }, { write: line => void lines.push(line) }),
  });
  onTestFinished(() => redis.close());
  await delay(1_000);
  await first.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  await redis.opened;
  expect(lines.filter(line => line.includes('only the first address in SLUICE_REDIS_URL is used'))).toHaveLength(1);
});
