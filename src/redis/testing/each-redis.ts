import { afterAll, beforeAll, describe } from 'vitest';
import { redisClusterUrl, redisUrl } from '../../../test/support/redis/shared.ts';
import { createLogger } from '../../telemetry/log.ts';
import { connectRedis, type RedisClient } from '../client.ts';

/** Runs the same tests on a single Redis and on a Cluster of three: a key that a script does not declare fails there. */
export function onEachRedis(body: (redis: () => RedisClient) => void): void {
  describe.each([
    ['one Redis', redisUrl],
    ['a Redis Cluster', redisClusterUrl],
  ] as const)('on %s', (_name, urlOf) => {
    let redis: RedisClient | undefined;
    beforeAll(async () => {
      redis = await connectRedis(urlOf(), createLogger({ level: 'silent' }));
    });
    afterAll(() => redis?.close());
    body(() => redis as RedisClient);
  });
}
