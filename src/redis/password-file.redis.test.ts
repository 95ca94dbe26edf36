import { rmSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startRedisCluster } from '../../test/support/redis/cluster.ts';
import { type RedisServer, startRedis } from '../../test/support/redis/server.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { createLogger } from '../telemetry/log.ts';
import { type LateRedis, openRedis } from './late-client.ts';

const SOON = { timeout: 20_000 };

/** Changes the password of the user sluice and closes its connections. */
async function rotate(servers: readonly RedisServer[], password: string): Promise<void> {
  for (const { command } of servers) {
    await command('ACL', 'SETUSER', 'sluice', 'on', 'resetpass', `>${password}`, '~*', '&*', '+@all');
  }
  for (const { command } of servers) await command('CLIENT', 'KILL', 'USER', 'sluice');
}

async function writePassword(password: string): Promise<{ file: string; write: (password: string) => void }> {
  const folder = await temporaryFolder('password');
  onTestFinished(folder.remove);
  const file = `${folder.path}/password`;
  const write = (text: string) => writeFileSync(file, `${text}\n`);
  write(password);
  return { file, write };
}

function open(url: string, passwordFile: string): LateRedis {
  const log = createLogger({ level: 'silent' });
  const redis = openRedis({ url: url.replaceAll('//', '//sluice@'), passwordFile, log });
  onTestFinished(() => redis.close());
  return redis;
}

const reasonsOf = (redis: LateRedis) => redis.impairments().map(({ reason, cause }) => `${reason}/${cause}`);

/** Collects the messages published on a channel. `listening` is the number of subscriptions. */
function listen(redis: LateRedis, channel: string): { heard: string[]; listening: () => number } {
  const heard: string[] = [];
  let listening = 0;
  redis.client.subscribe(
    [channel],
    (_channel, message) => heard.push(message),
    () => listening++,
  );
  return { heard, listening: () => listening };
}

/**
 * Waits until there have been this many additional connections to these servers and returns the elapsed milliseconds.
 */
async function durationOf(connections: number, servers: readonly RedisServer[]): Promise<number> {
  let own = 0;
  const count = async () => {
    const infos = await Promise.all(servers.map(({ command }) => command('INFO', 'stats')));
    own += servers.length;
    const counts = infos.map(info => Number(/total_connections_received:(\d+)/.exec(String(info))?.[1]));
    return counts.reduce((sum, each) => sum + each, -own);
  };
  const beganMs = performance.now();
  const before = await count();
  await vi.waitFor(async () => expect(await count()).toBeGreaterThanOrEqual(before + connections), SOON);
  return performance.now() - beganMs;
}

test('a rotated password is read from its file, including by the subscriber', async () => {
  const server = await startRedis();
  onTestFinished(server.stop);
  const { file, write } = await writePassword('first');
  await rotate([server], 'first');
  const redis = open(server.url, file);
  const news = listen(redis, 'news');
  await redis.opened;
  expect(await redis.client.call('set', 'a', '1')).toBe('OK');
  await vi.waitFor(() => expect(news.listening()).toBe(1), SOON);

  await rotate([server], 'second');
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual(['RedisAccessDenied/dependency']), SOON);
  const message = redis.impairments()[0]?.message;
  expect(message).toContain(`Correct the password in SLUICE_REDIS_PASSWORD_FILE (${file}).`);
  expect(message).toContain('WRONGPASS');
  expect(message).not.toMatch(/first|second/);

  write('second');
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual([]), SOON);
  expect(await redis.client.call('get', 'a')).toBe('1');
  await vi.waitFor(() => expect(news.listening()).toBe(2), SOON);
  await redis.client.publish('news', 'again');
  await vi.waitFor(() => expect(news.heard).toEqual(['again']), SOON);
});

test('while the file is missing, the last password is used, and the file is reported once Redis denies it', async () => {
  const server = await startRedis();
  onTestFinished(server.stop);
  const { file } = await writePassword('first');
  await rotate([server], 'first');
  const redis = open(server.url, file);
  await redis.opened;
  rmSync(file);
  const back = new Promise<void>(resolve => redis.client.onReconnect(resolve));
  await server.command('CLIENT', 'KILL', 'USER', 'sluice');
  await back;
  expect(reasonsOf(redis)).toEqual([]);

  await rotate([server], 'second');
  await vi.waitFor(
    () => expect(redis.impairments()[0]?.message).toContain(`SLUICE_REDIS_PASSWORD_FILE: ENOENT: ${file}.`),
    SOON,
  );
});

test('reports the variable if Redis requires a password', async () => {
  const server = await startRedis();
  onTestFinished(server.stop);
  await server.command('CONFIG', 'SET', 'requirepass', 'right');
  const redis = openRedis({ url: server.url, log: createLogger({ level: 'silent' }) });
  onTestFinished(() => redis.close());
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual(['RedisAccessDenied/dependency']), SOON);
  expect(redis.waiting()[0]?.message).toContain('Set SLUICE_REDIS_PASSWORD_FILE');
});

test('every node of a Cluster uses the rotated password, and so does the subscriber', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(cluster.stop);
  const { file, write } = await writePassword('first');
  await rotate(cluster.nodes, 'first');
  const redis = open(cluster.url, file);
  const news = listen(redis, 'news');
  await redis.opened;
  const keys = Array.from({ length: 30 }, (_, i) => `key:${i}`);
  await Promise.all(keys.map(key => redis.client.call('set', key, key)));
  await vi.waitFor(() => expect(news.listening()).toBe(1), SOON);

  await rotate(cluster.nodes, 'second');
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual(['RedisAccessDenied/dependency']), SOON);
  expect(redis.impairments()[0]?.message).toContain('Correct the password in SLUICE_REDIS_PASSWORD_FILE');

  // The client retries after a delay.
  expect(await durationOf(10, cluster.nodes)).toBeGreaterThan(500);

  write('second');
  await vi.waitFor(async () => {
    expect(await Promise.all(keys.map(key => redis.client.call('get', key)))).toEqual(keys);
    expect(reasonsOf(redis)).toEqual([]);
  }, SOON);
  await vi.waitFor(() => expect(news.listening()).toBe(2), SOON);
  await redis.client.publish('news', 'again');
  await vi.waitFor(() => expect(news.heard).toEqual(['again']), SOON);
});
