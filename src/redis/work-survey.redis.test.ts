import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../test/support/redis/server.ts';
import { redisClusterUrl } from '../../test/support/redis/shared.ts';
import { createLogger } from '../telemetry/log.ts';
import { connectRedis, type RedisClient } from './client.ts';
import { createHintIndex } from './hints.ts';
import { HINT_PARTITIONS, hintKeys, hintPartition } from './keys.ts';
import { START_MS } from './testing/tenant.ts';
import { estimateOpenDeliveries, surveyWork } from './work-survey.ts';

const log = createLogger({ level: 'silent' });

async function connect(url: string): Promise<RedisClient> {
  const redis = await connectRedis(url, log);
  onTestFinished(() => redis.close());
  return redis;
}

/** A Redis of its own: the index of all tests is one. */
async function startOwn(): Promise<RedisClient> {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  return connect(server.url);
}

async function countCommands(redis: RedisClient, work: () => Promise<unknown>): Promise<number> {
  const before = redis.commandsSent();
  await work();
  return redis.commandsSent() - before;
}

test('says what waits, what is due, and for how long nobody has come, in one command', async () => {
  const redis = await startOwn();
  const hints = createHintIndex(redis, 'd');
  const survey = (nowMs: number) => surveyWork(redis, 'd', nowMs);
  expect(await survey(START_MS)).toEqual({ waiting: 0, due: 0, overdueMs: 0 });

  await hints.lower([
    { member: 'int_a/sub_a.1', dueMs: START_MS - 700 },
    { member: 'int_b/sub_b.1', dueMs: START_MS - 9_000 },
    { member: 'int_c/sub_c.1', dueMs: START_MS + 60_000 },
  ]);
  expect(await survey(START_MS)).toEqual({ waiting: 3, due: 2, overdueMs: 9_000 });
  expect(await surveyWork(redis, 'r', START_MS)).toEqual({ waiting: 0, due: 0, overdueMs: 0 });
  for (let p = 0; p < HINT_PARTITIONS; p++) await hints.pick(p, START_MS, 10, 10_000, 'token');
  expect(await survey(START_MS)).toEqual({ waiting: 3, due: 0, overdueMs: 0 });
  // Whoever took them died: what it had is overdue since its lease ended.
  expect(await survey(START_MS + 15_000)).toEqual({ waiting: 3, due: 2, overdueMs: 5_000 });
  expect(await countCommands(redis, () => survey(START_MS))).toBe(1);
});

test('counts open deliveries exactly while few subscriptions have any, in at most 64 commands and one', async () => {
  const redis = await startOwn();
  const hints = createHintIndex(redis, 'd');
  const open = async (deliveries: number) => {
    const [integration, sub] = [`int_${randomUUID()}`, `sub_${randomUUID()}`];
    for (let i = 0; i < deliveries; i++) await redis.call('zadd', `{i:${integration}}:${sub}.1:pend`, 0, `k\0${i}`);
    await hints.lower([{ member: `${integration}/${sub}.1`, dueMs: START_MS }]);
  };
  expect(await estimateOpenDeliveries(redis, START_MS)).toBe(0);
  await open(3);
  await open(4);
  expect(await estimateOpenDeliveries(redis, START_MS)).toBe(7);
  for (let i = 0; i < 400; i++) await open(2);
  const commands = await countCommands(redis, async () => {
    const estimate = await estimateOpenDeliveries(redis, START_MS);
    expect(Math.abs(estimate - 807)).toBeLessThan(120);
  });
  expect(commands).toBe(65);
});

test('asks each partition by itself on a Cluster', async () => {
  const redis = await connect(redisClusterUrl());
  // Each master is connected to at its first command.
  await redis.callAll('PING');
  const member = `int_${randomUUID()}/sub_x.1`;
  await createHintIndex(redis, 'd').lower([{ member, dueMs: START_MS }]);
  const commands = await countCommands(redis, async () => {
    const { waiting, due } = await surveyWork(redis, 'd', START_MS);
    expect(waiting).toBeGreaterThanOrEqual(1);
    expect(due).toBeGreaterThanOrEqual(1);
  });
  expect(commands).toBe(HINT_PARTITIONS);

  await redis.call('zrem', hintKeys('d', hintPartition(member)).due, member);
});
