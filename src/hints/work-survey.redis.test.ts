import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../test/support/redis/server.ts';
import { redisClusterUrl } from '../../test/support/redis/shared.ts';
import { START_MS } from '../record/testing/tenant.ts';
import { connectRedis, type RedisClient } from '../redis/client.ts';
import { HINT_PARTITIONS, hintKeys, hintPartition } from '../redis/keys.ts';
import { createLogger } from '../telemetry/log.ts';
import { createHintIndex } from './hints.ts';
import { surveyWork } from './work-survey.ts';

const log = createLogger({ level: 'silent' });

async function connect(url: string): Promise<RedisClient> {
  const redis = await connectRedis(url, log);
  onTestFinished(() => redis.close());
  return redis;
}

/** This test uses a separate Redis because the index is shared by all tests. */
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

test('returns waiting and due members, and the oldest one, in one command', async () => {
  const redis = await startOwn();
  const hints = createHintIndex(redis, 's');
  const survey = (nowMs: number) => surveyWork(redis, 's', nowMs);
  expect(await survey(START_MS)).toEqual({ waiting: 0, due: 0, overdueMs: 0 });

  await hints.lower([
    { member: 'ten_a:run_a', dueMs: START_MS - 700 },
    { member: 'ten_b:run_b', dueMs: START_MS - 9_000 },
    { member: 'ten_c:run_c', dueMs: START_MS + 60_000 },
  ]);
  expect(await survey(START_MS)).toEqual({ waiting: 3, due: 2, overdueMs: 9_000 });
  expect(await surveyWork(redis, 'a', START_MS)).toEqual({ waiting: 0, due: 0, overdueMs: 0 });
  for (let p = 0; p < HINT_PARTITIONS; p++) await hints.pick(p, START_MS, 10, 10_000, 'token');
  expect(await survey(START_MS)).toEqual({ waiting: 3, due: 0, overdueMs: 0 });
  // The worker that picked them has crashed, so its members are overdue since the end of its lease.
  expect(await survey(START_MS + 15_000)).toEqual({ waiting: 3, due: 2, overdueMs: 5_000 });
  expect(await countCommands(redis, () => survey(START_MS))).toBe(1);
});

test('queries each partition separately in a Cluster', async () => {
  const redis = await connect(redisClusterUrl());
  // Each master is connected when it runs its first command.
  await redis.callAll('PING');
  const member = `ten_${randomUUID()}:run_x`;
  await createHintIndex(redis, 's').lower([{ member, dueMs: START_MS }]);
  const commands = await countCommands(redis, async () => {
    const { waiting, due } = await surveyWork(redis, 's', START_MS);
    expect(waiting).toBeGreaterThanOrEqual(1);
    expect(due).toBeGreaterThanOrEqual(1);
  });
  expect(commands).toBe(HINT_PARTITIONS);

  await redis.call('zrem', hintKeys('s', hintPartition(member)).due, member);
});
