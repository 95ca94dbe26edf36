import { expect, onTestFinished, test } from 'vitest';
import { type Proxy, startProxy } from '../../test/chaos/proxy.ts';
import { type RedisServer, startRedis } from '../../test/support/redis/server.ts';
import { createLogger } from '../telemetry/log.ts';
import { type LateRedis, openRedis } from './late-client.ts';
import { hearNews } from './testing/heard.ts';

const SOON = { timeout: 40_000, interval: 200 };
const log = createLogger({ level: 'silent' });

async function start(): Promise<RedisServer> {
  const server = await startRedis();
  onTestFinished(server.stop);
  return server;
}

/** Connects to Redis at an address that can be moved to another server. */
async function openAt(server: RedisServer): Promise<{ proxy: Proxy; redis: LateRedis; heard: readonly string[] }> {
  const proxy = await startProxy(server.port);
  onTestFinished(proxy.stop);
  const redis = openRedis({ url: proxy.url, log });
  onTestFinished(() => redis.close());
  const heard = hearNews(redis.client);
  await redis.opened;
  await expect.poll(() => heard, SOON).toEqual(['listening']);
  return { proxy, redis, heard };
}

test('leaves a server that does not respond, and uses the one that has taken over its address', async () => {
  const [first, second] = [await start(), await start()];
  const { proxy, redis, heard } = await openAt(first);
  await redis.client.call('set', 'at', 'first');
  await second.command('SET', 'at', 'second');
  proxy.hang();
  proxy.forwardTo(second.port);
  await expect.poll(() => redis.client.call('get', 'at').catch(String), SOON).toBe('second');
  await expect.poll(() => heard, SOON).toEqual(['listening', 'listening']);
  await second.command('PUBLISH', 'news', 'x');
  await expect.poll(() => heard, SOON).toEqual(['listening', 'listening', 'x']);
}, 90_000);

test('leaves a master that became a replica, including its subscriber', async () => {
  const [first, second] = [await start(), await start()];
  const { proxy, redis, heard } = await openAt(first);
  proxy.forwardTo(second.port);
  await first.command('REPLICAOF', '127.0.0.1', second.port);
  await expect.poll(() => redis.client.call('set', 'a', '1').catch(String), SOON).toBe('OK');
  expect(await second.command('GET', 'a')).toBe('1');
  await expect.poll(() => heard, SOON).toEqual(['listening', 'listening']);
  const clients = String(await second.command('CLIENT', 'LIST', 'TYPE', 'pubsub'));
  expect(clients).toContain(' sub=1 ');
}, 90_000);
