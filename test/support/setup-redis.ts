import type { TestProject } from 'vitest/node';
import { type Provided, provideRedis, provideRedisCluster } from './redis/provider.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A Redis for each worker; `redisUrl()` returns that of a test. */
    redisUrls: readonly string[];
    /** A Redis Cluster for each worker: its nodes, separated by commas. */
    redisClusterUrls: readonly string[];
  }
}

/** Global set-up of the project `redis`. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const started: Provided[] = [];
  const stop = async () => {
    await Promise.all(started.map(server => server.stop()));
  };
  const provideEach = async (provide: () => Promise<Provided>) => {
    const urls: string[] = [];
    while (urls.length < project.config.maxWorkers) {
      const provided = await provide();
      started.push(provided);
      urls.push(provided.url);
    }
    return urls;
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
