import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { monitorRedis } from './redis-monitor.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const ROUNDS = 50;

let server: RedisServer;
let client: Redis;

beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.url);
  await client.ping();
});

afterAll(async () => {
  client?.disconnect();
  await server?.stop();
});

test('records the commands of a busy Redis server from the first one', async () => {
  for (let n = 0; n < ROUNDS; n++) {
    const heard: (readonly string[])[] = [];
    const work = client.pipeline(Array.from({ length: 2_000 }, () => ['set', 'a "quoted" key', 'b\r\nc'])).exec();
    const close = await monitorRedis(server.url, args => heard.push(args));
    await work;
    await client.ping();
    await expect.poll(() => heard.at(-1), SOON).toEqual(['ping']);
    close();
    for (const args of heard.slice(0, -1))
      expect(args).toEqual(['set', String.raw`a \"quoted\" key`, String.raw`b\r\nc`]);
  }
});

test('distinguishes the commands of scripts and of clients', async () => {
  const heard: string[] = [];
  const close = await monitorRedis(server.url, ([name], source) =>
    heard.push(`${source === 'lua' ? 'lua' : 'client'} ${name}`),
  );
  await client.eval("return redis.call('get', KEYS[1])", 1, 'k');
  await expect.poll(() => heard, SOON).toEqual(['client eval', 'lua get']);
  close();
});
