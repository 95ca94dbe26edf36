import type { TestProject } from 'vitest/node';
import { provideRedis, provideRedisCluster } from './redis/provider.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** One Redis for the whole run: use keys of your own, or `startRedis()` when you must flush or kill it. */
    redisUrl: string;
    /** The nodes of a Redis Cluster, separated by commas; shared like `redisUrl`. */
    redisClusterUrl: string;
  }
}

/** Global set-up of the project `redis`. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await provideRedis();
  const cluster = await provideRedisCluster().catch(async (error: unknown) => {
    await redis.stop();
    throw error;
  });
  project.provide('redisUrl', redis.url);
  project.provide('redisClusterUrl', cluster.url);
  return async () => {
    await Promise.all([redis.stop(), cluster.stop()]);
  };
}
