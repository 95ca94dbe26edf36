import { expect, onTestFinished, test } from 'vitest';
import { startRedisCluster } from '../../../../test/support/redis/cluster.ts';
import type { RedisServer } from '../../../../test/support/redis/server.ts';
import { connectRedis } from '../../../redis/client.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createMemorySource } from '../../memory-source.ts';
import { INGRESS_LIMITS } from '../limits.ts';
import { createMemoryStop } from './memory-stop.ts';

test('the other masters of a Cluster are still checked while one of them does not answer', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const [silent, filling, freed] = cluster.nodes;
  if (silent === undefined || filling === undefined || freed === undefined) throw new Error('not enough nodes');
  for (const node of cluster.nodes) await node.command('CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
  const log = createLogger({ level: 'silent' });
  const redis = await connectRedis(cluster.url, log);
  onTestFinished(() => redis.close());
  async function fillTo(node: RedisServer, ratio: number): Promise<void> {
    const used = Number(/^used_memory:(\d+)/m.exec(String(await node.command('INFO', 'memory')))?.[1]);
    await node.command('CONFIG', 'SET', 'maxmemory', Math.round(used / ratio));
  }
  const source = createMemorySource(redis);
  const limits = { ...INGRESS_LIMITS, memoryLookMs: 50 };
  const stop = createMemoryStop({ source, limits, log, onFailure: () => {}, monotonicMs: () => performance.now() });
  const refusalOf = (node: RedisServer) => {
    for (let i = 0; ; i++) {
      const stream = { tenant: 'ten_x', queue: `q${i}`, payer: 'acc_x', bytes: 0 };
      if (source.masterOf(stream.tenant, stream.queue).endsWith(`:${node.port}`)) return stop.refusalOf(stream);
    }
  };
  for (const full of [silent, freed]) await fillTo(full, 0.9);
  await stop.start();
  onTestFinished(() => stop.stop());
  expect([silent, filling, freed].map(refusalOf)).toEqual(['full', undefined, 'full']);
  await silent.kill('SIGSTOP');
  onTestFinished(() => silent.kill('SIGCONT'));
  await fillTo(filling, 0.9);
  await fillTo(freed, 0.5);
  const isSeen = () => [silent, filling, freed].map(refusalOf);
  // Its commands time out after 5 s.
  await expect.poll(isSeen, { timeout: 4_000, interval: 50 }).toEqual(['full', 'full', undefined]);
}, 60_000);
