import { readdirSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { masterOfSlot, type RedisCluster, startRedisCluster } from '../../test/support/redis/cluster.ts';
import { type RedisOptions, type RedisServer, startRedis } from '../../test/support/redis/server.ts';
import { urlAs } from '../../test/support/redis/users.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis } from './client.ts';
import { rewriteFilesAfterRestarts } from './file-rewrites.ts';
import { keySlot } from './key-slot.ts';

const SOON = { timeout: 20_000, interval: 20 };
const EVERY_MS = 50;
/** A write of several commands, so Redis encloses it in MULTI and EXEC. */
const WRITE = "for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1]) end";

async function startServer(options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startRedis({ appendonly: true, ...options });
  onTestFinished(server.stop);
  return server;
}

/** Starts the rewrites like a controller. `logged` contains the messages, by level. */
async function start(url: string, everyMs = 60_000) {
  const log = createLogger({ level: 'silent' });
  const logged: string[] = [];
  for (const level of ['info', 'warn'] as const) {
    vi.spyOn(log, level).mockImplementation((...args: unknown[]) => {
      logged.push(`${level}: ${args.find(arg => typeof arg === 'string')}`);
    });
  }
  const redis = await connectRedis(url, log);
  onTestFinished(() => redis.close());
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  rewriteFilesAfterRestarts(redis, { log, stop: stop.signal, everyMs });
  return { redis, logged };
}

/** Returns how often a server has rewritten its file since it started. */
async function rewritesOf(server: RedisServer): Promise<string> {
  const info = String(await server.command('INFO', 'persistence'));
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r$`, 'm').exec(info)?.[1];
  return field('aof_rewrite_in_progress') === '1' ? 'running' : `${field('aof_rewrites')}`;
}

/** Kills Redis in the middle of a write, and restarts only its container. */
async function tear(server: RedisServer): Promise<void> {
  const [, dir] = (await server.command('CONFIG', 'GET', 'dir')) as [string, string];
  const folder = join(dir, 'appendonlydir');
  // Redis removes a previous file in the background.
  const file = readdirSync(folder)
    .filter(name => name.endsWith('.incr.aof'))
    .toSorted()
    .at(-1);
  await server.command('EVAL', WRITE, 2, 'torn1', 'torn2', 'x');
  await server.kill();
  const path = join(folder, file as string);
  // EXEC has 14 bytes, so this is in the middle of the second SET.
  truncateSync(path, readFileSync(path).length - 24);
  await server.restart({ repair: false });
}

/** Returns a key that this node stores. */
function keyOf(cluster: RedisCluster, node: RedisServer): string {
  const keys = Array.from({ length: 100 }, (_, i) => `key${i}`);
  return keys.find(key => masterOfSlot(cluster, keySlot(key)) === node) as string;
}

const TORN = ['MGET', 'torn1', 'torn2', 'later1'] as const;

test('a part of a write during which Redis was killed has no effect after its container was restarted twice', async () => {
  const server = await startServer();
  const { logged } = await start(server.url);
  await expect.poll(() => rewritesOf(server), SOON).toBe('1');
  await tear(server);
  await server.command('EVAL', WRITE, 2, 'later1', 'later2', 'x');
  await expect.poll(() => rewritesOf(server), SOON).toBe('1');
  await server.restart({ repair: false });
  expect(await server.command(...TORN)).toEqual([null, null, 'x']);
  expect(logged).toContainEqual(expect.stringMatching(/^info: redis rewrites its append-only file/));
});

test('this also applies if the controller starts later than Redis', async () => {
  const server = await startServer();
  await tear(server);
  await server.command('EVAL', WRITE, 2, 'later1', 'later2', 'x');
  await start(server.url);
  await expect.poll(() => rewritesOf(server), SOON).toBe('1');
  await server.restart({ repair: false });
  expect(await server.command(...TORN)).toEqual([null, null, 'x']);
});

test('in a Cluster, only the master that was restarted rewrites its file', async () => {
  const cluster = await startRedisCluster({ redis: { appendonly: true } });
  onTestFinished(cluster.stop);
  const [first, ...others] = cluster.nodes as [RedisServer, ...RedisServer[]];
  const { redis } = await start(cluster.url, EVERY_MS);
  for (const node of cluster.nodes) await expect.poll(() => rewritesOf(node), SOON).toBe('1');
  await first.restart({ repair: false });
  // The client connects to a restarted node when it needs one of its keys.
  const use = () => redis.call('get', keyOf(cluster, first)).catch((error: Error) => error.message);
  await expect.poll(use, SOON).toBeNull();
  await expect.poll(() => rewritesOf(first), SOON).toBe('1');
  for (const node of others) expect(await rewritesOf(node)).toBe('1');
});

describe('does not rewrite', () => {
  /** Returns how often a server was asked about its file. */
  const looksAt = async (server: RedisServer) => {
    const info = String(await server.command('INFO', 'commandstats'));
    return Number(/^cmdstat_info:calls=(\d+)/m.exec(info)?.[1] ?? 0);
  };

  test('without an append-only file, or if it has been rewritten, even if its statistics were reset', async () => {
    const server = await startServer({ appendonly: false });
    await start(server.url, EVERY_MS);
    await expect.poll(() => looksAt(server), SOON).toBeGreaterThan(5);
    expect(await rewritesOf(server)).toBe('0');
    // This itself rewrites the file.
    await server.command('CONFIG', 'SET', 'appendonly', 'yes');
    await expect.poll(() => rewritesOf(server), SOON).toBe('1');
    await server.command('CONFIG', 'RESETSTAT');
    await expect.poll(() => looksAt(server), SOON).toBeGreaterThan(5);
    expect(await rewritesOf(server)).toBe('0');
  });

  test.each([
    ['the user is not allowed to', { users: ['-bgrewriteaof'] }],
    ['the service does not have this command', { extra: ['--rename-command', 'BGREWRITEAOF', ''] }],
  ])('if %s, and logs this once', async (_, options) => {
    const server = await startServer(options);
    const { logged, redis } = await start('users' in options ? urlAs('controller', server.url) : server.url, EVERY_MS);
    await expect.poll(() => logged, SOON).toEqual([expect.stringMatching(/^warn: redis does not allow BGREWRITEAOF/)]);
    const before = redis.commandsSent();
    await delay(4 * EVERY_MS);
    expect(redis.commandsSent()).toBe(before);
    expect(logged).toHaveLength(1);
    expect(await rewritesOf(server)).toBe('0');
  });
});
