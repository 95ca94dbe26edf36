import type { RedisClient } from './client.ts';
import { CLUSTER_KEYS } from './keys.ts';

/**
 * Version of the layout of keys and values in Redis. Increase it with a change that the version before would misread:
 * replicas of that version then refuse to start or to lead instead of damaging data.
 */
export const FORMAT = 1;

/** Redis contains data in a newer format than this version can read. */
export class RedisFormatError extends Error {
  override readonly name = 'RedisFormatError';
  constructor(found: number) {
    super(
      `the data has format ${found}, but this version of Sluice reads formats up to ${FORMAT}. Use the version that wrote the data, or a newer one`,
    );
  }
}

/** @throws RedisFormatError if the data in Redis was written by a newer version. Data without a format is older */
export async function checkFormat(redis: Pick<RedisClient, 'readHash'>): Promise<void> {
  const found = Number((await redis.readHash(CLUSTER_KEYS.meta)).format ?? 0);
  if (found > FORMAT) throw new RedisFormatError(found);
}
