import { expect, onTestFinished, test } from 'vitest';
import { startRedisCluster } from '../../../../test/support/redis/cluster.ts';
import type { RedisServer } from '../../../../test/support/redis/server.ts';
import { PART_NUMBER } from '../../../part/keys.ts';
import { connectRedis } from '../../../redis/client.ts';
import { CLUSTER_KEYS } from '../../../redis/keys.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createMemorySource } from '../../memory-source.ts';
import { INGRESS_LIMITS } from '../limits.ts';
import { createMemoryStop } from './memory-stop.ts';

const log = createLogger({ level: 'silent' });

/** A Cluster whose masters can fail one by one, and a client. */
async function start() {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  for (const node of cluster.nodes) await node.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
  const redis = await connectRedis(cluster.url, log);
  onTestFinished(() => redis.close());
  const source = createMemorySource(redis);
  const limits = { ...INGRESS_LIMITS, memoryLookMs: 50, guaranteedBytes: 1 };
  const clock = { aheadMs: 0 };
  const monotonicMs = () => performance.now() + clock.aheadMs;
  const stop = createMemoryStop({ source, limits, log, onFailure: () => {}, monotonicMs });
  onTestFinished(() => stop.stop());
  /** Returns a stream whose events are stored on this node. */
  function streamOn(node: RedisServer, tenant = 'ten_x') {
    for (let i = 0; ; i++) {
      const stream = { tenant, queue: `q${i}`, payer: `acc_${tenant}`, bytes: 0 };
      if (source.masterOf(stream.tenant, stream.queue).endsWith(`:${node.port}`)) return stream;
    }
  }
  const refusalOf = (node: RedisServer) => stop.refusalOf(streamOn(node));
  return { nodes: cluster.nodes, redis, clock, stop, streamOn, refusalOf };
}

/** Sets the limit of a node so that this fraction of it is used. Returns the number of used bytes. */
async function fillTo(node: RedisServer, ratio: number): Promise<number> {
  const used = Number(/^used_memory:(\d+)/m.exec(String(await node.command('INFO', 'memory')))?.[1]);
  await node.command('CONFIG', 'SET', 'maxmemory', Math.round(used / ratio));
  return used;
}

async function silence(node: RedisServer): Promise<void> {
  await node.kill('SIGSTOP');
  onTestFinished(() => node.kill('SIGCONT'));
}

test('the other masters of a Cluster are still checked while one of them does not respond', async () => {
  const { nodes, stop, refusalOf } = await start();
  const [silent, filling, freed] = nodes;
  if (silent === undefined || filling === undefined || freed === undefined) throw new Error('not enough nodes');
  for (const full of [silent, freed]) await fillTo(full, 0.9);
  await stop.start();
  expect([silent, filling, freed].map(refusalOf)).toEqual(['full', undefined, 'full']);
  await silence(silent);
  await fillTo(filling, 0.9);
  await fillTo(freed, 0.5);
  const isSeen = () => [silent, filling, freed].map(refusalOf);
  // The commands time out after 5 s.
  await expect.poll(isSeen, { timeout: 4_000, interval: 50 }).toEqual(['full', 'full', undefined]);
}, 60_000);

test('accounts keep their shares while the master with the stored bytes does not respond', async () => {
  const { nodes, redis, clock, stop, streamOn } = await start();
  const silent = nodes.find(({ port }) => redis.masterOf(CLUSTER_KEYS.stored).endsWith(`:${port}`));
  const [filling, other] = nodes.filter(node => node !== silent);
  if (silent === undefined || filling === undefined || other === undefined) throw new Error('not enough nodes');
  const [large, small] = [streamOn(filling), streamOn(filling, 'ten_y')];
  const used = await fillTo(filling, 0.8);
  for (const { tenant, queue, payer, bytes } of [{ ...large, bytes: used }, small]) {
    await redis.call('hset', CLUSTER_KEYS.stored, `${tenant}:${queue}:${PART_NUMBER}`, `gen ${bytes} ${payer}`);
  }
  await stop.start();
  const excessOf = (bytes: number) => stop.refusalOf({ ...large, bytes });
  expect([excessOf(used), excessOf(1)]).toEqual([{ storedBytes: used, shareBytes: expect.any(Number) }, undefined]);
  await silence(silent);
  clock.aheadMs = 3_000_000;
  // The shares are computed again from the current usage.
  for (const ratio of [0.78, 0.81, 0.79]) {
    const before = excessOf(used);
    await fillTo(filling, ratio);
    await expect.poll(() => excessOf(used), { timeout: 4_000, interval: 50 }).not.toEqual(before);
    expect([excessOf(used), excessOf(1)]).toEqual([{ storedBytes: used, shareBytes: expect.any(Number) }, undefined]);
  }
  // A command to this master has failed.
  await expect(redis.readHash(CLUSTER_KEYS.stored)).rejects.toThrow();
  await fillTo(other, 0.9);
  await expect.poll(() => stop.refusalOf(streamOn(other)), { timeout: 4_000, interval: 50 }).toBe('full');
  expect(excessOf(used)).toBeDefined();
}, 60_000);
