import { afterAll, beforeAll } from 'vitest';
import { type RedisOptions, type RedisServer, startRedis } from '../../../../test/support/redis/server.ts';
import { connectRedis, type RedisClient } from '../../../redis/client.ts';
import { createLogger } from '../../../telemetry/log.ts';

/** Starts a Redis that is only used for the tests of a single file. The tests are able to stop it or disconnect it. */
export function useOwnRedis(options: RedisOptions = {}): { readonly server: RedisServer; readonly redis: RedisClient } {
  const own = {} as { server: RedisServer; redis: RedisClient };
  beforeAll(async () => {
    own.server = await startRedis(options);
    own.redis = await connectRedis(own.server.url, createLogger({ level: 'silent' }));
  });
  afterAll(async () => {
    await own.redis?.close();
    await own.server?.stop();
  });
  return own;
}
