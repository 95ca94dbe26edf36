import { expect, onTestFinished, test } from 'vitest';
import { masterOfSlot, moveSlot, startRedisCluster } from '../../test/support/redis/cluster.ts';
import type { RedisServer } from '../../test/support/redis/server.ts';
import { redisClusterUrl } from '../../test/support/redis/shared.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis, type RedisClient } from './client.ts';
import { followConnectionErrors } from './connection/connection-errors.ts';
import { connectFirst, findRedis } from './connection/connections.ts';
import { keySlot } from './key-slot.ts';
import { openRedis } from './late-client.ts';
import { classifyRedisFailure } from './redis-metrics.ts';

const log = createLogger({ level: 'silent' });
const SOON = { timeout: 40_000, interval: 200 };

async function connect(url: string): Promise<RedisClient> {
  const redis = await connectRedis(url, log);
  onTestFinished(() => redis.close());
  return redis;
}

test('connects even if the names of some nodes cannot be resolved', async () => {
  const redis = await connect(`redis://node-0.invalid:6379,${redisClusterUrl()}`);
  expect(redis.cluster).toBe(true);
  expect(redis.masters()).toHaveLength(3);
  const keys = Array.from({ length: 30 }, (_, n) => `none:${n}`);
  expect(new Set(await Promise.all(keys.map(key => redis.call('exists', key))))).toEqual(new Set([0]));
});

test('forgets the error of a node that is not needed while the Cluster is being used', async () => {
  const cluster = (await findRedis({ url: redisClusterUrl() }, log)).create();
  onTestFinished(() => cluster.disconnect());
  let nowMs = 0;
  const error = followConnectionErrors(cluster, () => nowMs);
  await connectFirst(cluster);
  // Such as a connection that reads the slots while the password is rotated.
  cluster.emit('node error', new Error('WRONGPASS'), '127.0.0.1:1');
  expect(error()?.message).toBe('127.0.0.1:1: WRONGPASS');
  nowMs = 60_001;
  expect(error()).toBeUndefined();
});

test('a user who may not follow a slot that is being moved does not end the process', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(cluster.stop);
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  const redis = await connect(cluster.url);
  const slot = keySlot('moving');
  const from = masterOfSlot(cluster, slot);
  const to = cluster.nodes.find(node => node !== from) as typeof from;
  await moveSlot(slot, from, to);
  await to.command('ACL', 'SETUSER', 'default', '-asking');
  await expect(redis.call('get', 'moving')).rejects.toThrow();
  expect(redis.deniedCommand()?.message).toContain('asking');
  await to.command('ACL', 'SETUSER', 'default', '+asking');
  expect(await redis.call('get', 'moving')).toBeNull();
  expect(unhandled).toEqual([]);

  // A slot without a node. It is counted as a failover, and not as a lost connection.
  for (const node of cluster.nodes) await node.command('CLUSTER', 'DELSLOTS', keySlot('lost'));
  const error = await redis.call('get', 'lost').catch((thrown: unknown) => thrown);
  expect(String(error)).toContain('CLUSTERDOWN');
  expect(classifyRedisFailure(error)).toBe('unavailable');
});

test('uses the new master of a slot while the previous one hangs', async () => {
  const cluster = await startRedisCluster({ replicas: true });
  onTestFinished(cluster.stop);
  const redis = await connect(cluster.url);
  await redis.call('set', 'a', '1');
  const hanging = masterOfSlot(cluster, keySlot('a'));
  await hanging.kill('SIGSTOP');
  onTestFinished(() => hanging.kill('SIGCONT'));
  await expect.poll(() => redis.call('set', 'a', '2').catch((error: Error) => error.message), SOON).toBe('OK');
}, 60_000);

test('confirms writes by the new master of a slot, even if nothing else is sent', async () => {
  const cluster = await startRedisCluster({ replicas: true });
  onTestFinished(cluster.stop);
  const redis = await connectRedis({ url: cluster.url, waitReplicas: 1 }, log);
  onTestFinished(() => redis.close());
  const source = "#!lua\nreturn redis.call('SET', KEYS[1], ARGV[1])";
  const script = { name: 'test', source, keys: ['key'], listedKeys: undefined, args: ['value'], takesMore: false };
  const write = () =>
    redis.runNamed(script, { keys: { key: 'a' }, args: { value: '1' } }).catch((error: Error) => error.message);
  await expect.poll(write, SOON).toBe('OK');
  const master = masterOfSlot(cluster, keySlot('a'));
  const others = cluster.nodes.filter(node => node !== master);
  await master.kill();
  const roles = () => Promise.all(others.map(async node => String(await node.command('ROLE')).split(',')[0]));
  await expect.poll(async () => (await roles()).filter(role => role === 'master'), SOON).toHaveLength(3);
  await master.restart();
  await expect.poll(write, SOON).toBe('OK');
}, 120_000);

test('is used as soon as it works, if it was down when the role started', async () => {
  const cluster = await startRedisCluster({ redis: { appendonly: true } });
  onTestFinished(cluster.stop);
  const [first, , last] = cluster.nodes as [RedisServer, RedisServer, RedisServer];
  const state = async () => /cluster_state:(\w+)/.exec(String(await first.command('CLUSTER', 'INFO')))?.[1];
  await last.kill();
  await expect.poll(state, SOON).toBe('fail');
  const redis = openRedis({ url: cluster.url, log });
  onTestFinished(() => redis.close());
  await expect.poll(() => redis.impairments()[0]?.message, SOON).toContain('the Redis Cluster is down');
  await last.restart();
  await redis.opened;
  expect(await redis.client.call('set', 'a', '1')).toBe('OK');
}, 90_000);

test('names a node that announces an address which cannot be reached', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(cluster.stop);
  for (const node of cluster.nodes) {
    await node.command('CONFIG', 'SET', 'cluster-announce-hostname', 'node.invalid');
    await node.command('CONFIG', 'SET', 'cluster-preferred-endpoint-type', 'hostname');
  }
  const slots = async () =>
    JSON.stringify(await Promise.all(cluster.nodes.map(each => each.command('CLUSTER', 'SLOTS'))));
  await expect.poll(async () => (await slots()).match(/\["node\.invalid"/g), SOON).toHaveLength(9);
  const redis = openRedis({ url: cluster.url, log });
  onTestFinished(() => redis.close());
  await expect.poll(() => redis.impairments()[0]?.message, SOON).toMatch(/: node\.invalid:\d+: getaddrinfo /);
}, 90_000);
