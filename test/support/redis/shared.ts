import { inject } from 'vitest';

/**
 * Returns the URL of this worker's Redis. The test files of the worker share it, one after the other: use unique keys,
 * or `startRedis()` if you must flush or kill it. No other worker uses it.
 */
export const redisUrl = (): string => ofThisWorker(inject('redisUrls'));

/** Returns the nodes of this worker's Redis Cluster, separated by commas; shared like `redisUrl`. */
export const redisClusterUrl = (): string => ofThisWorker(inject('redisClusterUrls'));

function ofThisWorker(urls: readonly string[]): string {
  const worker = Number(process.env['VITEST_POOL_ID']);
  const url = urls[worker - 1];
  if (url === undefined) throw new Error(`worker ${worker} has none: the run has ${urls.length}`);
  return url;
}
