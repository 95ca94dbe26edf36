import { DEFAULT_INSTANCE } from '../api/instance.ts';
import type { RedisClient } from './client.ts';
import { CLUSTER_KEYS } from './keys.ts';

/**
 * The format version of keys and values in Redis. Increase it with a change that other versions would misread: replicas
 * then refuse to start or to lead instead of damaging data.
 */
export const FORMAT = 3;

/** Redis contains data in a format that this version cannot read. */
export class RedisFormatError extends Error {
  override readonly name = 'RedisFormatError';
  constructor(found: number) {
    super(
      found > FORMAT
        ? `the data has format ${found}, but this version of Sluice reads format ${FORMAT}. Use the version that wrote the data, or a newer one`
        : `the data has format ${found}, but this version of Sluice reads format ${FORMAT}. Deliver the stored events with the version that wrote them, then empty this Redis (FLUSHALL): the controller writes everything else again`,
    );
  }
}

/** Redis is already used for the data of another installation in this cluster. */
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
 * format uses format 0. Data without an instance belongs to the default installation.
 *
 * @returns the state of the installation
 * @throws RedisFormatError if the data was written in another format
 * @throws RedisInstanceError if the data belongs to another installation
 */
export async function checkMarker(
  redis: Pick<RedisClient, 'readHash'>,
  own: string,
): Promise<Readonly<Record<string, string>>> {
  const state = await redis.readHash(CLUSTER_KEYS.meta);
  const { uid, format, instance = DEFAULT_INSTANCE } = state;
  // There has been no leader yet, or no controller has written any data since the data was lost.
  if (uid === undefined && format === undefined) return state;
  if (instance !== own) throw new RedisInstanceError(instance, own);
  const found = Number(format ?? 0);
  if (found !== FORMAT) throw new RedisFormatError(found);
  return state;
}
