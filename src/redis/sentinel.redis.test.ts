import { writeFileSync } from 'node:fs';
import { afterAll, expect, type TestContext, test, vi } from 'vitest';
import { createAuthority, tlsArguments } from '../../test/support/certificates.ts';
import { freePort } from '../../test/support/free-port.ts';
import { startPart } from '../../test/support/part/part.ts';
import { startSentinels } from '../../test/support/redis/sentinel.ts';
import { type RedisServer, redisCommand, startRedis } from '../../test/support/redis/server.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { createLogger } from '../telemetry/log.ts';
import type { RedisSettings } from './connection/redis-settings.ts';
import { type LateRedis, openRedis } from './late-client.ts';

const SOON = { timeout: 30_000, interval: 100 };
const log = createLogger({ level: 'silent' });
const folder = await temporaryFolder('sentinel-test');
afterAll(folder.remove);

/** ioredis prints errors that nothing listens for. */
const printed = vi.spyOn(console, 'error');
afterAll(() => {
  if (printed.mock.calls.length > 0) throw new Error(`ioredis printed: ${String(printed.mock.calls)}`);
});

/** These tests run concurrently because most of them wait for a failover. Each test cleans up using its own context. */
type Finished = TestContext['onTestFinished'];

/** Starts a master and a replica that have the user sluice with the password `secret`. */
async function startPair(
  onTestFinished: Finished,
  extra: () => Promise<{ args: readonly string[]; port?: number }> = async () => ({ args: [] }),
): Promise<{ master: RedisServer; replica: RedisServer; masterPort: number }> {
  const user = ['--user', 'sluice', 'on', '>secret', '~*', '&*', '+@all'];
  const first = await extra();
  const master = await startRedis({ appendonly: true, extra: [...user, ...first.args] });
  onTestFinished(master.stop);
  const masterPort = first.port ?? master.port;
  const second = await extra();
  const follow = ['--replicaof', '127.0.0.1', `${masterPort}`, '--repl-diskless-sync-delay', '0'];
  const replica = await startRedis({ appendonly: true, extra: [...user, ...second.args, ...follow] });
  onTestFinished(replica.stop);
  await vi.waitFor(
    async () => expect(await replica.command('INFO', 'replication')).toContain('master_link_status:up'),
    SOON,
  );
  return { master, replica, masterPort };
}

function open(onTestFinished: Finished, settings: RedisSettings): LateRedis {
  const redis = openRedis({ ...settings, log });
  onTestFinished(() => redis.close());
  return redis;
}

function listen(redis: LateRedis): string[] {
  const heard: string[] = [];
  redis.client.subscribe(
    ['news'],
    (_channel, message) => heard.push(message),
    () => heard.push('listening'),
  );
  return heard;
}

const passwordFile = `${folder.path}/password`;
writeFileSync(passwordFile, 'secret\n');

/** Without a password, Sentinel only has the default user. */
const AT_SENTINEL = { passwordFile, sentinelUsername: 'default' };

test.concurrent('follows a failover: events and messages continue with the replica that Sentinel promotes', async ({
  onTestFinished,
}) => {
  const { master, replica } = await startPair(onTestFinished);
  const sentinels = await startSentinels({ name: 'main', master: master.port });
  onTestFinished(sentinels.stop);
  const hosts = sentinels.ports.map(port => `127.0.0.1:${port}`).join(',');
  const redis = open(onTestFinished, { url: `redis+sentinel://sluice@${hosts}/main`, ...AT_SENTINEL });
  const heard = listen(redis);
  await redis.opened;
  const { t } = await startPart(redis.client, { a: {} }, ['k']);
  await t.send('k');
  await vi.waitFor(() => expect(heard).toEqual(['listening']), SOON);
  const length = () => replica.command('XLEN', t.keys.log);
  await vi.waitFor(async () => expect(await length()).toBe(1), SOON);

  await master.kill();
  await vi.waitFor(() => expect(redis.impairments()[0]?.reason).toBe('RedisUnavailable'), SOON);
  await vi.waitFor(() => t.send('k'), SOON);
  expect(redis.impairments()).toEqual([]);
  // The client can learn this from another Sentinel first.
  await vi.waitFor(async () => expect(await sentinels.masterPort()).toBe(replica.port), SOON);
  expect(await length()).toBe(2);
  // Sentinel closes the connections to a replica when it promotes it, so the subscriber may have to subscribe again.
  await vi.waitFor(async () => {
    await redis.client.publish('news', 'x');
    expect(heard).toContain('x');
  }, SOON);
  expect(heard.slice(0, 2)).toEqual(['listening', 'listening']);
});

test.concurrent('leaves a master that does not respond, including its subscriber, once Sentinel has replaced it', async ({
  onTestFinished,
}) => {
  const { master, replica } = await startPair(onTestFinished);
  const sentinels = await startSentinels({ name: 'main', master: master.port });
  onTestFinished(sentinels.stop);
  const redis = open(onTestFinished, {
    url: `redis+sentinel://sluice@127.0.0.1:${sentinels.ports[0]}/main`,
    ...AT_SENTINEL,
  });
  const heard = listen(redis);
  await redis.opened;
  await vi.waitFor(() => expect(heard).toEqual(['listening']), SOON);
  await master.kill('SIGSTOP');
  onTestFinished(() => master.kill('SIGCONT'));
  await vi.waitFor(async () => expect(await redis.client.call('set', 'a', '1')).toBe('OK'), SOON);
  expect(await replica.command('GET', 'a')).toBe('1');
  await vi.waitFor(() => expect(heard.slice(0, 2)).toEqual(['listening', 'listening']), SOON);
});

test.concurrent('connects again if there is a failover while a Sentinel does not respond', async ({
  onTestFinished,
}) => {
  const { master } = await startPair(onTestFinished);
  const sentinels = await startSentinels({ name: 'main', master: master.port });
  onTestFinished(sentinels.stop);
  const hosts = sentinels.ports.map(port => `127.0.0.1:${port}`).join(',');
  const redis = open(onTestFinished, { url: `redis+sentinel://sluice@${hosts}/main`, ...AT_SENTINEL });
  await redis.opened;
  for (const port of sentinels.ports) {
    const clients = async () => String(await redisCommand(port, 'CLIENT', 'LIST'));
    await vi.waitFor(async () => expect(await clients()).toContain(' sub=1 '), SOON);
  }
  sentinels.pause(0);
  await master.kill();
  await vi.waitFor(async () => expect(await redis.client.call('set', 'a', '1')).toBe('OK'), SOON);
});

test.concurrent('supports TLS, a client certificate, a database, and separate passwords for Sentinels, master, and replica', async ({
  onTestFinished,
}) => {
  const authority = await createAuthority(folder.path);
  const server = await authority.issue('server', 'IP:127.0.0.1');
  const client = await authority.issue('client');
  const { master, masterPort } = await startPair(onTestFinished, async () => {
    const port = await freePort();
    return { args: tlsArguments(port, authority.ca, server, 'yes'), port };
  });
  const tlsPorts = [await freePort(), await freePort(), await freePort()];
  const sentinels = await startSentinels({
    name: 'main',
    master: masterPort,
    extra: index => [
      ...tlsArguments(tlsPorts[index] as number, authority.ca, server, 'yes')
        .join(' ')
        .split(/ ?--/)
        .slice(1),
      'user watcher on >watching ~* &* +@all',
    ],
  });
  onTestFinished(sentinels.stop);
  const sentinelPasswordFile = `${folder.path}/sentinel-password`;
  writeFileSync(sentinelPasswordFile, 'wrong\n');
  const redis = open(onTestFinished, {
    url: `rediss+sentinel://sluice@127.0.0.1:${tlsPorts[0]}/main/3`,
    passwordFile,
    sentinelUsername: 'watcher',
    sentinelPasswordFile,
    caFile: authority.ca,
    certFile: client.cert,
    keyFile: client.key,
  });
  await vi.waitFor(() => expect(redis.impairments()[0]?.reason).toBe('RedisAccessDenied'), SOON);
  expect(redis.impairments()[0]?.message).toContain(
    `Correct the password in SLUICE_REDIS_SENTINEL_PASSWORD_FILE (${sentinelPasswordFile}).`,
  );
  writeFileSync(sentinelPasswordFile, 'watching\n');
  await redis.opened;
  const heard = listen(redis);
  await redis.client.call('set', 'a', '1');
  expect(await master.command('INFO', 'keyspace')).toContain('db3:keys=1');
  await vi.waitFor(() => expect(heard).toEqual(['listening']), SOON);

  // Clients waiting for a failover connect to a Sentinel again after its password has changed.
  const waiting = async () => {
    const lists = await Promise.all(sentinels.ports.map(port => redisCommand(port, 'CLIENT', 'LIST')));
    const clients = lists.flatMap(list => String(list).split('\n'));
    return clients.filter(line => line.includes(' user=watcher ') && line.includes(' sub=1 ')).length;
  };
  await vi.waitFor(async () => expect(await waiting()).toBeGreaterThanOrEqual(2), SOON);
  for (const port of sentinels.ports) {
    await redisCommand(port, 'ACL', 'SETUSER', 'watcher', 'resetpass', '>changed');
    await redisCommand(port, 'CLIENT', 'KILL', 'USER', 'watcher');
  }
  expect(await waiting()).toBe(0);
  writeFileSync(sentinelPasswordFile, 'changed\n');
  await vi.waitFor(async () => expect(await waiting()).toBeGreaterThanOrEqual(2), SOON);

  await master.kill();
  await vi.waitFor(async () => expect(await redis.client.call('get', 'a')).toBe('1'), SOON);
});

test.concurrent('reports an unknown master name and unreachable Sentinels', async ({ onTestFinished }) => {
  const master = await startRedis();
  onTestFinished(master.stop);
  const sentinels = await startSentinels({ name: 'main', master: master.port, replicas: 0 });
  onTestFinished(sentinels.stop);
  const [port] = sentinels.ports as [number];
  const unknown = open(onTestFinished, { url: `redis+sentinel://127.0.0.1:${port}/other` });
  await vi.waitFor(() => expect(unknown.impairments()[0]?.message).toContain('Correct the master name'), SOON);
  const none = open(onTestFinished, { url: `redis+sentinel://127.0.0.1:${await freePort()}/main` });
  await vi.waitFor(() => expect(none.impairments()[0]?.message).toContain('ECONNREFUSED'), SOON);
  const far = open(onTestFinished, { url: `redis+sentinel://127.0.0.1:${port}/main/99` });
  await vi.waitFor(() => expect(far.impairments()[0]?.message).toContain('DB index is out of range'), SOON);
  // The first Sentinel is unavailable, but the second Sentinel responds, so this is not the problem.
  await master.command('CONFIG', 'SET', 'requirepass', 'secret');
  const denied = open(onTestFinished, { url: `redis+sentinel://127.0.0.1:${await freePort()},127.0.0.1:${port}/main` });
  await vi.waitFor(() => expect(denied.impairments()[0]?.message).toContain('NOAUTH'), SOON);
  expect(denied.impairments()[0]?.message).toContain('Set SLUICE_REDIS_PASSWORD_FILE');
});
