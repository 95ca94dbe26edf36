import { stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from './server.ts';
import { redisClusterUrl, redisUrl } from './shared.ts';

test('acknowledged data survives SIGKILL and a restart on the same port', async () => {
  const redis = await startRedis({ appendonly: true, appendfsync: 'always' });
  onTestFinished(redis.stop);
  const { url, pid } = redis;
  expect(await redis.command('SET', 'kept', 'yes')).toBe('OK');

  await redis.kill();
  await expect(redis.command('PING')).rejects.toThrow('Connection is closed');
  await redis.restart();

  expect(redis.url).toBe(url);
  expect(redis.pid).not.toBe(pid);
  expect(await redis.command('GET', 'kept')).toBe('yes');
});

test('does not apply a part of a transaction that was not completely written before SIGKILL', async () => {
  const redis = await startRedis({ appendonly: true });
  onTestFinished(redis.stop);
  const SET_TWO = "redis.call('SET', KEYS[1], '') redis.call('SET', KEYS[2], '')";
  await redis.command('EVAL', SET_TWO, 2, 'torn1', 'torn2');
  const [, dir] = (await redis.command('CONFIG', 'GET', 'dir')) as [string, string];
  await redis.kill();
  const file = join(dir, 'appendonlydir', 'appendonly.aof.1.incr.aof');
  // EXEC has 14 bytes, so this is in the middle of the second SET.
  await truncate(file, (await stat(file)).size - 24);

  await redis.restart();
  await redis.command('EVAL', SET_TWO, 2, 'later1', 'later2');
  await redis.restart();

  expect(await redis.command('MGET', 'torn1', 'torn2', 'later1', 'later2')).toEqual([null, null, '', '']);
});

test('without an append-only file, a restart removes all data', async () => {
  const redis = await startRedis();
  onTestFinished(redis.stop);
  await redis.command('SET', 'lost', 'yes');
  await redis.restart();
  expect(await redis.command('GET', 'lost')).toBeNull();
});

test('refuses writes and does not evict data if its memory is full', async () => {
  const redis = await startRedis({ maxmemory: '3mb' });
  onTestFinished(redis.stop);
  await redis.command('SET', 'first', 'kept');
  const fill = async (): Promise<void> => {
    for (let index = 0; index < 100; index++) await redis.command('SET', `fill:${index}`, Buffer.alloc(100_000));
  };
  await expect(fill()).rejects.toThrow('OOM');
  expect(await redis.command('GET', 'first')).toBe('kept');
});

test('a stopped process responds again after SIGCONT', async () => {
  const redis = await startRedis();
  onTestFinished(redis.stop);
  const { pid } = redis;
  await redis.kill('SIGSTOP');
  await redis.kill('SIGCONT');
  expect(await redis.command('PING')).toBe('PONG');
  expect(redis.pid).toBe(pid);
});

test('the test run has a Redis', async () => {
  const client = new Redis(redisUrl());
  onTestFinished(() => client.disconnect());
  expect(await client.ping()).toBe('PONG');
});

test('the test run has a Redis Cluster that serves keys of every slot range', async () => {
  const nodes = redisClusterUrl()
    .split(',')
    .map(url => new URL(url))
    .map(({ hostname, port }) => ({ host: hostname, port: Number(port) }));
  const cluster = new Redis.Cluster(nodes);
  onTestFinished(() => cluster.disconnect());
  const keys = Array.from({ length: 30 }, (_, index) => `support:{${index}}`);
  for (const key of keys) await cluster.set(key, key, 'EX', 60);
  const answers = await Promise.all(keys.map(key => cluster.get(key)));
  expect(answers).toEqual(keys);
  expect(cluster.nodes('master')).toHaveLength(3);
});
