import type { Logger } from '../telemetry/log.ts';
import type { RedisClient } from './client.ts';

/** Redis is not set up so that Sluice can keep its word. */
export class RedisSetupError extends Error {
  override readonly name = 'RedisSetupError';
}

/**
 * Checks every master at the start: Redis 7, `noeviction` (anything else removes gates and events when memory is
 * short). Warns where acknowledged events would not survive a power cut.
 */
export async function checkRedis(redis: RedisClient, log: Logger): Promise<void> {
  const replies = (await redis.callAll('INFO', 'everything')) as string[];
  for (const info of replies) {
    const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
    const version = field('redis_version') ?? '0';
    if (Number.parseInt(version, 10) < 7)
      throw new RedisSetupError(`Redis ${version} is too old: 7.0 or newer is needed`);
    const policy = field('maxmemory_policy');
    if (policy !== 'noeviction') {
      throw new RedisSetupError(
        `maxmemory-policy is ${policy}: set it to noeviction, or Redis drops gates and events when memory is short`,
      );
    }
    if (field('aof_enabled') !== '1')
      log.warn(
        'redis has no append-only file: acknowledged events do not survive its restart (appendonly yes, appendfsync always)',
      );
  }
}
