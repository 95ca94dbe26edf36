import { afterAll, beforeAll, describe } from 'vitest';
import { redisClusterUrl, redisUrl } from '../../../test/support/redis/shared.ts';
import { createLogger } from '../../telemetry/log.ts';
import { connectRedis, type RedisClient } from '../client.ts';

/**
 * Runs the same tests using a single Redis and then a Cluster with three nodes. In a Cluster, a test fails if a script
 * uses an undeclared key.
 */
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
