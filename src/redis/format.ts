import { DEFAULT_INSTANCE } from '../api/instance.ts';
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

/** Redis contains the data of another installation in the cluster. */
export class RedisInstanceError extends Error {
  override readonly name = 'RedisInstanceError';
  constructor(found: string, own: string) {
    super(
      `the data belongs to ${called(found)}, but SLUICE_INSTANCE makes this ${called(own)}. Set SLUICE_REDIS_URL to a separate Redis for each installation`,
    );
  }
}

function called(instance: string): string {
  return instance === DEFAULT_INSTANCE ? 'the default installation' : `the installation ${instance}`;
}

/**
 * Checks that this version can read the data in Redis, and that the data belongs to this installation. Data without a
 * format is older, and data without an instance belongs to the default installation.
 *
 * @throws RedisFormatError if the data was written by a newer version
 * @throws RedisInstanceError if the data was written by another installation
 */
export async function checkMarker(redis: Pick<RedisClient, 'readHash'>, own: string): Promise<void> {
  const { uid, format, instance = DEFAULT_INSTANCE } = await redis.readHash(CLUSTER_KEYS.meta);
  const found = Number(format ?? 0);
  if (found > FORMAT) throw new RedisFormatError(found);
  // Without the cluster, no controller has led yet.
  if (uid !== undefined && instance !== own) throw new RedisInstanceError(instance, own);
}
