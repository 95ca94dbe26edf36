import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { partKeys } from '../src/part/keys.ts';
import type { RedisClient } from '../src/redis/client.ts';
import { findRedis } from '../src/redis/connection/connections.ts';
import { createPushConnection } from '../src/redis/connection/push-connection.ts';
import { keySlot } from '../src/redis/key-slot.ts';
import { accountKeys, CLUSTER_KEYS, integrationKeys, tenantKeys } from '../src/redis/keys.ts';
import { type LateRedis, openRedis } from '../src/redis/late-client.ts';
import { createLogger } from '../src/telemetry/log.ts';
import { KEY_ACCESS } from '../src/testing/redis-commands.ts';
import { LOAD_USERS } from '../tools/generate/docs/redis.ts';
import { ACL_FILE, redisUserOf } from '../tools/generate/redis/acl.ts';
import type { RedisUser } from '../tools/generate/redis/rights.ts';
import { masterOfSlot, moveSlot, startRedisCluster } from './support/redis/cluster.ts';
import { startSentinels } from './support/redis/sentinel.ts';
import { DOCUMENTED, type RedisServer, startRedis } from './support/redis/server.ts';
import { denialsOn, urlAs } from './support/redis/users.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const run = promisify(execFile);
const SOON = { timeout: 20_000 };
const log = createLogger({ level: 'silent' });
const USERS: readonly RedisUser[] = ['controller', 'facade', 'ingress', 'dispatcher', 'all', 'uninstall'];
const ROLES: readonly RedisUser[] = ['controller', 'facade', 'ingress', 'dispatcher'];

const part = partKeys({ tenant: 'ten_a', queue: 'orders', gen: 'g', number: 0 });
const [tenant, account, integration] = [tenantKeys('ten_a'), accountKeys('acc_a'), integrationKeys('int_a')];

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis({ appendonly: true, extra: DOCUMENTED, users: [] });
});
afterAll(() => server.stop());

async function dryRun(user: RedisUser, ...command: readonly string[]): Promise<boolean> {
  return (await server.command('ACL', 'DRYRUN', redisUserOf(user), ...command)) === 'OK';
}

async function whoMay(...command: readonly string[]): Promise<RedisUser[]> {
  const allowed = await Promise.all(USERS.map(user => dryRun(user, ...command)));
  return USERS.filter((_, i) => allowed[i]);
}

function open(user: RedisUser, url: string): LateRedis {
  const redis = openRedis({ url: urlAs(user, url), log });
  onTestFinished(() => redis.close());
  return redis;
}

describe('the rights of users', () => {
  test.each([
    ['FLUSHALL'],
    ['FLUSHDB'],
    ['KEYS', '*'],
    ['SCAN', '0'],
    ['DEBUG', 'SLEEP', '0'],
    ['CONFIG', 'GET', '*'],
    ['CONFIG', 'SET', 'dir', '/tmp'],
    ['SHUTDOWN'],
    ['MONITOR'],
    ['ACL', 'LIST'],
    ['CLIENT', 'KILL', 'ID', '1'],
    ['CLUSTER', 'RESET'],
    ['REPLICAOF', 'NO', 'ONE'],
    ['MODULE', 'LIST'],
    ['SCRIPT', 'FLUSH'],
    ['FUNCTION', 'FLUSH'],
    ['DUMP', part.log],
    ['GET', 'unrelated'],
    ['PSUBSCRIBE', '*'],
    ['SWAPDB', '0', '1'],
  ])('do not include %s %s', async (...command) => {
    expect(await whoMay(...command)).toEqual([]);
  });

  test.each<[readonly string[], readonly RedisUser[]]>([
    [
      ['HSET', CLUSTER_KEYS.meta, 'epoch', '9'],
      ['controller', 'all'],
    ],
    [
      ['HSET', tenant.meta, 'ready', '1'],
      ['controller', 'all'],
    ],
    [
      ['HSET', tenant.keys, 'hash', 'ten_a'],
      ['controller', 'all'],
    ],
    [
      ['HSET', tenant.index, 'q:orders', '1'],
      ['controller', 'all'],
    ],
    [
      ['HSET', integration.act, 'key', '1'],
      ['controller', 'all'],
    ],
    [
      ['HSET', part.keys, 'key', 'slots'],
      ['controller', 'all'],
    ],
    [
      ['HSET', part.subs, 'slot', 'row'],
      ['controller', 'all'],
    ],
    [
      ['HSET', part.endpoints, 'slot', 'sealed'],
      ['controller', 'all'],
    ],
    [
      ['UNLINK', part.log],
      ['controller', 'dispatcher', 'all'],
    ],
    [
      ['HGET', tenant.keys, 'hash'],
      ['controller', 'ingress', 'all'],
    ],
    [
      ['HMGET', part.body, 'ref'],
      ['facade', 'ingress', 'dispatcher', 'all'],
    ],
    [
      ['HSET', part.body, 'ref', 'text'],
      ['controller', 'ingress', 'dispatcher', 'all'],
    ],
    [
      ['XADD', part.log, '*', 'g', ''],
      ['ingress', 'dispatcher', 'all'],
    ],
    [
      ['HGETALL', account.meta],
      ['controller', 'facade', 'dispatcher', 'all'],
    ],
    [
      ['HINCRBY', account.meta, 'used', '-1'],
      ['controller', 'facade', 'dispatcher', 'all'],
    ],
    [
      ['HGET', part.answers, 'slot'],
      ['controller', 'facade', 'dispatcher', 'all'],
    ],
    [
      ['HGET', tenant.series, '0'],
      ['controller', 'facade', 'dispatcher', 'all'],
    ],
    [
      ['HSET', tenant.series, '0', ''],
      ['controller', 'dispatcher', 'all'],
    ],
    [
      ['ZADD', CLUSTER_KEYS.members, '1', 'name'],
      ['controller', 'dispatcher', 'all'],
    ],
    [
      ['HSET', CLUSTER_KEYS.rootKeys, 'name', 'report'],
      ['controller', 'facade', 'dispatcher', 'all'],
    ],
    [
      ['HSET', part.replays, 'slot', 'ids'],
      ['controller', 'facade', 'dispatcher', 'all'],
    ],
    [
      ['SUBSCRIBE', CLUSTER_KEYS.alarm],
      ['controller', 'dispatcher', 'all'],
    ],
    [
      ['SSUBSCRIBE', part.channel],
      ['dispatcher', 'all'],
    ],
    [
      ['PUBLISH', CLUSTER_KEYS.alarm, 'x'],
      ['controller', 'facade', 'ingress', 'dispatcher', 'all'],
    ],
    [['PUBLISH', 'unrelated', 'x'], []],
    [['BGREWRITEAOF'], ['controller', 'all']],
    [
      ['SPUBLISH', CLUSTER_KEYS.partsChanged, ''],
      ['controller', 'dispatcher', 'all'],
    ],
  ])('grant %j only to %j', async (command, users) => {
    expect(await whoMay(...command)).toEqual(users);
  });

  test('a script has no more rights than its caller', async () => {
    const client = new Redis(urlAs('ingress', server.url), { lazyConnect: true });
    onTestFinished(() => client.disconnect());
    await client.connect();
    for (const command of [
      `'HGET', '${account.meta}', 'used'`,
      `'HSET', '${tenant.keys}', 'hash', 'x'`,
      `'HSET', '${CLUSTER_KEYS.meta}', 'epoch', '9'`,
      `'FLUSHALL'`,
    ]) {
      await expect(client.eval(`return redis.call(${command})`, 0), command).rejects.toThrow(
        'executing the script can',
      );
    }
    expect(await client.eval(`return redis.call('HGET', KEYS[1], 'ready')`, 1, tenant.meta)).toBeNull();
    expect(await denialsOn(server)).toHaveLength(4);
    await server.command('ACL', 'LOG', 'RESET');
  });

  test('the tests know how Redis checks the keys of each command', async () => {
    for (const [command, access] of Object.entries(KEY_ACCESS)) {
      const [info] = (await server.command('COMMAND', 'INFO', command)) as [unknown[]];
      const [, ...specs] = JSON.stringify(info?.[8] ?? []).split('"flags"');
      const flags = specs.length === 0 ? await flagsOfSubcommand(command) : specs.join();
      const found = `${/"access"/.test(flags) ? 'R' : ''}${/"(?:insert|update|delete)"/.test(flags) ? 'W' : ''}`;
      expect(`${command} ${found}`).toBe(`${command} ${access}`);
    }
  });

  async function flagsOfSubcommand(command: string): Promise<string> {
    const [info] = (await server.command('COMMAND', 'INFO', `${command}|STREAM`)) as [unknown[]];
    return JSON.stringify(info?.[8]);
  }
});

describe('the file of the users', () => {
  test('can be loaded, and requires a password for each user', async () => {
    const path = new URL(`../${ACL_FILE}`, import.meta.url).pathname;
    const other = await startRedis({ extra: ['--aclfile', path] });
    onTestFinished(other.stop);
    const users = (await other.command('ACL', 'USERS')) as string[];
    expect(users.toSorted()).toEqual(['default', ...USERS.map(redisUserOf)].toSorted());
    const client = new Redis(urlAs('ingress', other.url), { lazyConnect: true, retryStrategy: () => null });
    client.on('error', () => {});
    await expect(client.connect()).rejects.toThrow();
  });

  test('is loaded with passwords by the documented commands', async () => {
    const folder = await temporaryFolder('users');
    onTestFinished(folder.remove);
    await writeFile(join(folder.path, 'users.acl'), 'user default on nopass ~* &* +@all\n');
    const other = await startRedis({ extra: ['--aclfile', join(folder.path, 'users.acl')] });
    onTestFinished(other.stop);
    await mkdir(join(folder.path, 'config/redis'), { recursive: true });
    await cp(new URL(`../${ACL_FILE}`, import.meta.url), join(folder.path, ACL_FILE));
    const script = [`redis-cli() { command redis-cli -e -p ${other.port} "$@"; }`, 'set -e', ...LOAD_USERS].join('\n');
    const { stdout } = await run('bash', ['-c', script], { cwd: folder.path });
    expect(new Set(stdout.trim().split('\n'))).toEqual(new Set(['OK']));
    const password = (await readFile(join(folder.path, 'ingress'), 'utf8')).trim();
    const redis = openRedis({ url: other.url.replace('//', `//${redisUserOf('ingress')}:${password}@`), log });
    onTestFinished(() => redis.close());
    await redis.opened;
    expect(await readFile(join(folder.path, 'users.acl'), 'utf8')).toContain('user sluice-uninstall on #');
  });

  test('can be applied again line by line, which keeps passwords and removes other permissions', async () => {
    const user = redisUserOf('ingress');
    await server.command('ACL', 'SETUSER', user, '+flushall', '~*', '(~* +@all)');
    expect(await dryRun('ingress', 'FLUSHALL')).toBe(true);
    const lines = readFileSync(new URL(`../${ACL_FILE}`, import.meta.url), 'utf8')
      .trim()
      .split('\n');
    for (const line of lines) await server.command('ACL', 'SETUSER', ...line.split(' ').slice(1));
    expect(await whoMay('FLUSHALL')).toEqual([]);
    expect(await whoMay('HGET', 'unrelated', 'x')).toEqual([]);
    await open('ingress', server.url).opened;
  });
});

/** Runs the same commands as the connections of each role. */
async function useConnections(client: RedisClient): Promise<void> {
  expect(await client.readHash(CLUSTER_KEYS.meta)).toEqual({});
  await client.callAll('INFO', 'memory');
  await client.run('hinted', ['{a:1}:due'], [1]);
  await client.publish(CLUSTER_KEYS.alarm, 't:ten_a');
}

test('each role can connect to Redis Cluster, including the channels of its nodes', async () => {
  const cluster = await startRedisCluster({ users: [] });
  onTestFinished(cluster.stop);
  for (const role of ROLES) {
    const redis = open(role, cluster.url);
    await redis.opened;
    expect(redis.client.cluster).toBe(true);
    await useConnections(redis.client);
  }
  const heard: string[] = [];
  const pushes = createPushConnection(await findRedis({ url: urlAs('dispatcher', cluster.url) }, log), log);
  onTestFinished(pushes.close);
  await new Promise<void>(onListening => {
    pushes.listen(part.channel, { onMessage: message => heard.push(message.toString()), onListening });
  });
  const ingress = open('ingress', cluster.url);
  await ingress.opened;
  await ingress.client.call('spublish', part.channel, 'push');
  await vi.waitFor(() => expect(heard).toEqual(['push']), SOON);
  pushes.leave(part.channel);
  for (const node of cluster.nodes) expect(await denialsOn(node)).toEqual([]);
});

test('each role follows a slot that is being moved to another node of a Cluster', async () => {
  const cluster = await startRedisCluster({ users: [] });
  onTestFinished(cluster.stop);
  const slot = keySlot(part.meta);
  const from = masterOfSlot(cluster, slot);
  const to = cluster.nodes.find(node => node !== from) as RedisServer;
  await from.command('HSET', part.meta, 'gen', 'g');
  await moveSlot(slot, from, to);
  await from.command('MIGRATE', '127.0.0.1', to.port, part.meta, 0, 5_000);
  for (const role of ROLES) {
    const redis = open(role, cluster.url);
    await redis.opened;
    expect(await redis.client.readHash(part.meta)).toEqual({ gen: 'g' });
  }
  for (const node of cluster.nodes) expect(await denialsOn(node)).toEqual([]);
});

test('each role finds the master using Sentinel', async () => {
  const sentinels = await startSentinels({
    name: 'main',
    master: server.port,
    replicas: 0,
    extra: () => [
      'user default on nopass ~* &* +@all',
      'user sluice-sentinel on >secret resetchannels -@all +ping +info +subscribe +sentinel|get-master-addr-by-name +sentinel|sentinels &+switch-master',
    ],
  });
  onTestFinished(sentinels.stop);
  const hosts = sentinels.ports.map(port => `127.0.0.1:${port}`).join(',');
  for (const role of ROLES) {
    const redis = openRedis({
      url: `redis+sentinel://${redisUserOf(role)}:secret@${hosts}/main`,
      sentinelUsername: 'sluice-sentinel',
      log,
    });
    onTestFinished(() => redis.close());
    await redis.opened;
    await useConnections(redis.client);
  }
  expect(await denialsOn(server)).toEqual([]);
});

test('a role reports the user, the command, and the solution if a permission is missing', async () => {
  const other = await startRedis({ appendonly: true, extra: DOCUMENTED, users: [] });
  onTestFinished(other.stop);
  const redis = open('ingress', other.url);
  await redis.opened;
  expect(redis.impairments()).toEqual([]);
  await other.command('ACL', 'SETUSER', redisUserOf('ingress'), '-hgetall');
  await expect(redis.client.readHash(CLUSTER_KEYS.meta)).rejects.toThrow('NOPERM');
  const [impairment] = redis.impairments();
  expect(impairment).toMatchObject({ reason: 'RedisAccessDenied', cause: 'dependency' });
  expect(impairment?.message).toMatch(/^Redis at redis:\/\/sluice-ingress@127\.0\.0\.1:\d+ .*'hgetall'/);
  expect(impairment?.message).toContain(
    'Give user sluice-ingress the permissions in config/redis/users.acl of this version. ACL LOG shows the denied command or key.',
  );
});
