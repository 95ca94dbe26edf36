import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type RedisServer, startRedis } from '../../test/support/redis/server.ts';
import { createLogger } from '../telemetry/log.ts';
import { FORMAT } from './format.ts';
import { type LateRedis, openRedis } from './late-client.ts';

const log = createLogger({ level: 'silent' });

function open(url: string): LateRedis {
  const redis = openRedis({ url, log });
  onTestFinished(() => redis.close());
  return redis;
}

async function start(options: Parameters<typeof startRedis>[0] = {}): Promise<RedisServer> {
  const server = await startRedis(options);
  onTestFinished(() => server.stop());
  return server;
}

const SOON_MS = 20_000;
const reasonsOf = (redis: LateRedis) => redis.impairments().map(({ reason, cause }) => `${reason}/${cause}`);

test.each([
  ['99', 'Use the version that wrote the data'],
  ['1', 'empty this Redis (FLUSHALL)'],
])('a Redis with data of format %s is not used until the data is removed', async (format, advice) => {
  const server = await start();
  await server.command('HSET', '{c}:meta', 'uid', 'ours', 'format', format);
  const redis = open(server.url);
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual(['UnsupportedRedisFormat/settings']), SOON_MS);
  expect(redis.impairments()[0]?.message).toContain(`the data has format ${format}`);
  expect(redis.impairments()[0]?.message).toContain(advice);
  await expect(redis.client.call('get', 'a')).rejects.toThrow('Connection is closed');
  await server.command('DEL', '{c}:meta');
  await redis.opened;
  expect(redis.impairments()).toEqual([]);
});

test('a Redis with data of another installation is not used until the data is removed', async () => {
  const server = await start();
  await server.command('HSET', '{c}:meta', 'uid', 'cluster', 'instance', 'blue');
  const redis = open(server.url);
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual(['ForeignRedis/settings']), SOON_MS);
  expect(redis.impairments()[0]?.message).toMatch(
    /^Redis at redis:\S+ \(SLUICE_REDIS_URL\): the data belongs to the installation blue, but SLUICE_INSTANCE makes this the default installation\. Set SLUICE_REDIS_URL to a separate Redis for each installation\.$/,
  );
  await expect(redis.client.call('get', 'a')).rejects.toThrow('Connection is closed');
  await server.command('DEL', '{c}:meta');
  await redis.opened;
  expect(redis.impairments()).toEqual([]);
});

describe.each([
  ['another format', 'UnsupportedRedisFormat/settings', ['format', '99']],
  ['another installation', 'ForeignRedis/settings', ['instance', 'blue']],
])('data of %s that is added later', (_what, reason, fields) => {
  const MARKED = ['HSET', '{c}:meta', 'uid', 'ours', 'format', String(FORMAT), 'instance', ''] as const;

  async function startMarked(checkEveryMs: number) {
    const server = await start();
    await server.command(...MARKED);
    const redis = openRedis({ url: server.url, log, checkEveryMs });
    onTestFinished(() => redis.close());
    await redis.opened;
    const reconnects: string[] = [];
    // Changes by a role during this time must not reach the other data.
    redis.client.onReconnect(() => {
      redis.client.call('set', 'seen', '1').then(
        () => reconnects.push('used'),
        () => reconnects.push('refused'),
      );
    });
    return { server, redis, reconnects };
  }

  test('with a new connection is not used until it is removed, and then the reconnect is reported', async () => {
    const { server, redis, reconnects } = await startMarked(60_000);
    await server.command('HSET', '{c}:meta', ...fields);
    await server.command('CLIENT', 'KILL', 'TYPE', 'normal');
    await vi.waitFor(() => expect(reasonsOf(redis)).toEqual([reason]), SOON_MS);
    expect(redis.client.isReady()).toBe(false);
    expect(redis.waiting()[0]?.message).toContain('the data');
    await expect(redis.client.call('get', 'a')).rejects.toThrow('the data');
    await expect(redis.client.run('hashes', ['a'], [])).rejects.toThrow('the data');
    await expect(redis.client.publish('a', 'b')).rejects.toThrow('the data');
    expect(reconnects).toEqual([]);
    expect(await server.command('EXISTS', 'seen')).toBe(0);
    await server.command(...MARKED);
    await vi.waitFor(() => expect(reconnects).toEqual(['used']), SOON_MS);
    expect(reasonsOf(redis)).toEqual([]);
  });

  test('with the same connection is not used until it is removed', async () => {
    const { server, redis, reconnects } = await startMarked(20);
    await server.command('HSET', '{c}:meta', ...fields);
    await vi.waitFor(() => expect(reasonsOf(redis)).toEqual([reason]), SOON_MS);
    await expect(redis.client.call('get', 'a')).rejects.toThrow('the data');
    await server.command('FLUSHALL');
    await vi.waitFor(() => expect(reconnects).toEqual(['used']), SOON_MS);
    expect(reasonsOf(redis)).toEqual([]);
  });
});

describe('a Redis that is unavailable at the start', () => {
  test('is reported with its variable, rejects commands, and is used as soon as it responds', async () => {
    const server = await start();
    const port = server.port;
    await server.kill();
    const redis = open(server.url);
    const heard: string[] = [];
    redis.client.subscribe(
      ['news'],
      (_channel, message) => heard.push(message),
      () => heard.push('listening'),
    );
    await vi.waitFor(() => expect(redis.impairments()[0]?.message).toContain('ECONNREFUSED'), SOON_MS);
    expect(redis.impairments()).toEqual([
      {
        reason: 'RedisUnavailable',
        cause: 'dependency',
        message: `Redis at redis://127.0.0.1:${port} (SLUICE_REDIS_URL) does not answer: connect ECONNREFUSED 127.0.0.1:${port}`,
      },
    ]);
    expect(redis.client.isReady()).toBe(false);
    await expect(redis.client.call('get', 'a')).rejects.toThrow('Connection is closed');
    await expect(redis.client.run('hashes', ['a'], [])).rejects.toThrow('Connection is closed');
    expect(Math.abs(redis.nowMs() - Date.now())).toBeLessThan(5_000);

    await server.restart();
    await redis.opened;
    expect(redis.impairments()).toEqual([]);
    expect(await redis.client.call('set', 'a', '1')).toBe('OK');
    await vi.waitFor(() => expect(heard).toEqual(['listening']), 10_000);
    await redis.client.publish('news', 'x');
    await vi.waitFor(() => expect(heard).toEqual(['listening', 'x']), 10_000);
  });
});

test('does not use a Redis with unsafe settings until they are correct', async () => {
  const server = await start({ extra: ['--maxmemory-policy', 'allkeys-lru'] });
  const redis = open(server.url);
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual(['RedisUnsuitable/settings']), SOON_MS);
  expect(redis.waiting()[0]?.message).toContain(
    `Redis at ${server.url} (SLUICE_REDIS_URL): maxmemory-policy is allkeys-lru: set it to noeviction`,
  );
  await expect(redis.client.call('get', 'a')).rejects.toThrow('maxmemory-policy');
  await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  await redis.opened;
  expect(reasonsOf(redis)).toEqual([]);
  expect(await redis.client.call('get', 'a')).toBeNull();
});

test('a wrong password is reported without being part of the message', async () => {
  const server = await start();
  await server.command('CONFIG', 'SET', 'requirepass', 'right');
  const redis = open(server.url.replace('//', '//:wrong@'));
  await vi.waitFor(() => expect(redis.impairments()[0]?.message).toContain('WRONGPASS'), SOON_MS);
  expect(redis.impairments()[0]?.message).not.toContain('wrong@');
});

test('reports a Redis that becomes unavailable later', async () => {
  const server = await start();
  const redis = open(server.url);
  await redis.opened;
  await server.kill();
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual(['RedisUnavailable/dependency']), SOON_MS);
  await server.restart();
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual([]), SOON_MS);
});

test('reports a Redis that hangs while its connections are open', async () => {
  const server = await start();
  const redis = openRedis({ url: server.url, log, checkEveryMs: 100 });
  onTestFinished(() => redis.close());
  await redis.opened;
  await server.kill('SIGSTOP');
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual(['RedisUnavailable/dependency']), SOON_MS);
  expect(redis.impairments()[0]?.message).toMatch(
    /^Redis at \S+ \(SLUICE_REDIS_URL\) does not answer: Command timed out$/,
  );
  await server.kill('SIGCONT');
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual([]), SOON_MS);
});

test('reports that Redis is loading its data, at the start and after a restart', async () => {
  const slow = ['--key-load-delay', '2000', '--loading-process-events-interval-bytes', '1024'];
  const server = await start({ extra: ['--enable-debug-command', 'yes', ...slow] });
  await server.command('DEBUG', 'POPULATE', '2000');
  const redis = open(server.url);
  await redis.opened;
  await server.command('SAVE');
  const restarted = server.restart();
  const early = open(server.url);
  await vi.waitFor(() => expect(early.waiting()[0]?.message).toMatch(/does not answer: LOADING/), SOON_MS);
  expect(redis.impairments()[0]?.message).toMatch(/is still loading its data or does not respond$/);
  await Promise.all([restarted, early.opened]);
  await vi.waitFor(() => expect([...redis.impairments(), ...early.impairments()]).toEqual([]), SOON_MS);
});

test('reports a permission that is missing since the connection was lost', async () => {
  const server = await start();
  await server.command('ACL', 'SETUSER', 'sluice', 'on', '>secret', '~*', '&*', '+@all');
  const redis = open(server.url.replace('//', '//sluice:secret@'));
  await redis.opened;
  await server.command('ACL', 'SETUSER', 'sluice', '-hgetall');
  await server.command('CLIENT', 'KILL', 'USER', 'sluice');
  await vi.waitFor(() => expect(reasonsOf(redis)).toEqual(['RedisAccessDenied/dependency']), SOON_MS);
  expect(redis.impairments()[0]?.message).toMatch(/NOPERM.*'hgetall'.*Give user sluice the permissions/);
  await expect(redis.client.call('get', 'a')).rejects.toThrow('NOPERM');
  await server.command('ACL', 'SETUSER', 'sluice', '+hgetall');
  await vi.waitFor(() => expect(redis.client.call('get', 'a')).resolves.toBeNull(), SOON_MS);
});

test('a client that is closed while it waits stops trying', async () => {
  const server = await start();
  await server.kill();
  const redis = openRedis({ url: server.url, log });
  await redis.close();
  await server.restart();
  const clients = async () =>
    String(await server.command('CLIENT', 'LIST'))
      .trim()
      .split('\n').length;
  expect(await clients()).toBe(1);
  expect(redis.client.isReady()).toBe(false);
});
