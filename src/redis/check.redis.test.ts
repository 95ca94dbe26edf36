import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { startRedisCluster } from '../../test/support/redis/cluster.ts';
import { type RedisOptions, type RedisServer, startRedis } from '../../test/support/redis/server.ts';
import { createLogger } from '../telemetry/log.ts';
import { checkRedis, RedisSetupError } from './check.ts';
import { connectRedis } from './client.ts';

const SETTINGS = ['lazyfree-lazy-expire', 'lazyfree-lazy-server-del'];
const YES = SETTINGS.flatMap(name => [`--${name}`, 'yes']);

async function startServer(options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startRedis({ appendonly: true, ...options });
  onTestFinished(server.stop);
  return server;
}

/** Connects and checks the settings like a role during startup. `warnings` contains the logged warnings. */
async function start(url: string) {
  const log = createLogger({ level: 'silent' });
  const warn = vi.spyOn(log, 'warn');
  const redis = await connectRedis(url, log);
  onTestFinished(() => redis.close());
  const warnings = () => warn.mock.calls.map(args => args.find(arg => typeof arg === 'string') as string);
  return { redis, warnings, check: () => checkRedis(redis, log) };
}

/** Returns the server settings, in the order of `SETTINGS`. */
async function settingsOf(server: RedisServer): Promise<unknown[]> {
  return Promise.all(
    SETTINGS.map(async name => ((await server.command('CONFIG', 'GET', name)) as [string, string])[1]),
  );
}

/** Returns the URL of a user with all permissions except for those removed by `rules`. */
async function userUrl(server: RedisServer, ...rules: string[]): Promise<string> {
  await server.command('ACL', 'SETUSER', 'sluice', 'on', '>secret', '~*', '&*', '+@all', ...rules);
  return server.url.replace('redis://', 'redis://sluice:secret@');
}

describe('settings for large hashes that expire without blocking Redis', () => {
  test('are set, and the log explains what to add to redis.conf', async () => {
    const server = await startServer();
    expect(await settingsOf(server)).toEqual(['no', 'no']);
    const { check, warnings } = await start(server.url);
    await check();
    expect(await settingsOf(server)).toEqual(['yes', 'yes']);
    expect(warnings()).toEqual([expect.stringContaining('redis.conf')]);
    for (const name of SETTINGS) expect(warnings()[0]).toContain(`${name} yes`);
  });

  test('are set on every master of a Cluster, even if they are only missing from one of them', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(cluster.stop);
    const [first, ...others] = cluster.nodes;
    for (const node of others) for (const name of SETTINGS) await node.command('CONFIG', 'SET', name, 'yes');
    expect(await settingsOf(first as RedisServer)).toEqual(['no', 'no']);
    const { check } = await start(cluster.url);
    await check();
    for (const node of cluster.nodes) expect(await settingsOf(node)).toEqual(['yes', 'yes']);
  });

  test('are not changed or logged if Redis has them', async () => {
    const server = await startServer({ extra: YES });
    const { check, warnings } = await start(server.url);
    await check();
    expect(warnings()).toEqual([]);
  });

  test('are set again if Redis restarts without them', async () => {
    const server = await startServer();
    const { check } = await start(server.url);
    await check();
    await server.restart();
    await expect.poll(() => settingsOf(server), { timeout: 10_000 }).toEqual(['yes', 'yes']);
  });
});

test('warns about settings that can lose events, also if they change later, once for each change', async () => {
  const server = await startServer({ extra: YES, appendfsync: 'everysec' });
  const { check, warnings } = await start(server.url);
  const checkAgain = await check();
  expect(warnings()).toEqual([expect.stringContaining('(set appendfsync always)')]);
  const set = async (...settings: string[]) => {
    await server.command('CONFIG', 'SET', ...settings);
    checkAgain();
  };
  await set('appendfsync', 'always');
  await set('appendonly', 'no', 'lazyfree-lazy-expire', 'no');
  await expect.poll(() => settingsOf(server), { timeout: 10_000 }).toEqual(['yes', 'yes']);
  checkAgain();
  await expect.poll(warnings, { timeout: 10_000 }).toHaveLength(3);
  expect(warnings()[1]).toContain('(set appendonly yes and appendfsync always)');
  expect(warnings()[2]).toContain('lazyfree-lazy-expire yes');
});

describe('without permission for CONFIG', () => {
  test('to set: refuses a Redis without the settings, and explains what to set', async () => {
    const server = await startServer();
    const { check } = await start(await userUrl(server, '-config', '+config|get'));
    const error = await check().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RedisSetupError);
    for (const name of SETTINGS) expect((error as Error).message).toContain(`${name} yes`);
    expect(await settingsOf(server)).toEqual(['no', 'no']);
  });

  test('to set: accepts a Redis with the settings', async () => {
    const server = await startServer({ extra: YES });
    const { check, warnings } = await start(await userUrl(server, '-config', '+config|get'));
    await check();
    expect(warnings()).toEqual([]);
  });

  test('at all, for this user: logs what to set', async () => {
    const server = await startServer();
    const { check, warnings } = await start(await userUrl(server, '-config'));
    await check();
    expect(warnings()).toHaveLength(1);
    for (const name of SETTINGS) expect(warnings()[0]).toContain(`${name} yes`);
  });

  test('at all, in a managed Redis: logs what to set', async () => {
    const server = await startServer({ extra: ['--rename-command', 'CONFIG', ''] });
    const { check, warnings } = await start(server.url);
    await check();
    expect(warnings()).toHaveLength(1);
    for (const name of SETTINGS) expect(warnings()[0]).toContain(`${name} yes`);
  });
});
