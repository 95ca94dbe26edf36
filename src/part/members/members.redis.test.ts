import { beforeEach, expect, test } from 'vitest';
import { withClock } from '../../../test/support/part/clock.ts';
import { startRedis } from '../../../test/support/redis/server.ts';
import { connectRedis, type RedisClient } from '../../redis/client.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createMembers } from './members.ts';

const KEPT_MS = 3_000;
const clock = { ms: 0 };
let redis: RedisClient;

beforeEach(async () => {
  // The members belong to the whole Redis.
  const server = await startRedis();
  redis = await connectRedis(`redis://127.0.0.1:${server.port}`, createLogger({ level: 'silent' }));
  clock.ms = 1_790_000_000_000;
  return async () => {
    await redis.close();
    await server.stop();
  };
});

const memberOf = (name: string) =>
  createMembers(
    withClock(redis, () => clock.ms),
    name,
  );

test('a member is listed until it leaves, or has not been active for its time', async () => {
  const [a, b, c] = ['a', 'b', 'c'].map(memberOf) as [ReturnType<typeof memberOf>, ...ReturnType<typeof memberOf>[]];
  await a.beat();
  expect(await b?.beat()).toEqual(['a', 'b']);
  expect(await a.leave()).toEqual(['b']);
  clock.ms += KEPT_MS - 1;
  expect(await c?.beat()).toEqual(['b', 'c']);
  clock.ms += 1;
  expect(await c?.beat()).toEqual(['c']);
});

test.each([3_600_000, KEPT_MS / 2])(
  'a member that crashed when the clock was set back by %i ms is only listed for its time',
  async byMs => {
    const alive = memberOf('alive');
    await memberOf('dead').beat();
    clock.ms -= byMs;
    expect(await alive.beat()).toContain('dead');
    clock.ms += KEPT_MS - 1;
    expect(await alive.beat()).toContain('dead');
    clock.ms += 1;
    expect(await alive.beat()).toEqual(['alive']);
  },
);
