import { inject } from 'vitest';

/**
 * Returns the Redis URL of this worker. The test files of a worker share it sequentially, so use unique keys, or
 * `startRedis()` to flush or kill a Redis. No other worker uses it.
 */
export const redisUrl = (): string => ofThisWorker(inject('redisUrls'));

/** Returns the nodes of this worker's Redis Cluster, separated by commas. They are shared like `redisUrl`. */
export const redisClusterUrl = (): string => ofThisWorker(inject('redisClusterUrls'));

function ofThisWorker(urls: readonly string[]): string {
  const worker = Number(process.env['VITEST_POOL_ID']);
  const url = urls[worker - 1];
  if (url === undefined) throw new Error(`worker ${worker} has no Redis: there are ${urls.length} for this run`);
  return url;
}
