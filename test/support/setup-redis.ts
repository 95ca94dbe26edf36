import type { TestProject } from 'vitest/node';
import { type Provided, provideRedis, provideRedisCluster } from './redis/provider.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** One Redis for each worker. `redisUrl()` returns the Redis of a test. */
    redisUrls: readonly string[];
    /** One Redis Cluster for each worker: its nodes, separated by commas. */
    redisClusterUrls: readonly string[];
  }
}

/** The global setup of the project `redis`. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const started: Provided[] = [];
  const stop = async () => {
    await Promise.all(started.map(server => server.stop()));
  };
  /** Starts all of them concurrently because forming a Cluster takes seconds. */
  const provideEach = async (provide: () => Promise<Provided>) => {
    const results = await Promise.allSettled(Array.from({ length: project.config.maxWorkers }, provide));
    const servers = results.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []));
    started.push(...servers);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    return servers.map(({ url }) => url);
  };
  try {
    project.provide('redisUrls', await provideEach(provideRedis));
    project.provide('redisClusterUrls', await provideEach(provideRedisCluster));
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
