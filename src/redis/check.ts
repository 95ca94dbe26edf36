import type { Logger } from '../telemetry/log.ts';
import type { RedisClient, Reply } from './client.ts';

/** The settings of Redis do not meet Sluice's requirements. */
export class RedisSetupError extends Error {
  override readonly name = 'RedisSetupError';
}

/**
 * If these settings are missing, Redis will block for several seconds when it has to free a hash with millions of
 * fields that has expired or was replaced.
 */
const LAZY_FREEING = ['lazyfree-lazy-expire', 'lazyfree-lazy-server-del'] as const;
const SET_THEM = LAZY_FREEING.map(name => `${name} yes`).join(', ');

/** Returns a field of the reply to INFO. */
const fieldOf = (info: string, name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];

/**
 * Checks every master: Redis 7 and `noeviction` (other policies remove gates and events when memory is low). This is
 * repeated because a failover, or a change of a DNS name, may lead to a server with other settings.
 *
 * @returns the replies to INFO
 * @throws RedisSetupError with the settings to change
 */
export async function checkServers(redis: Pick<RedisClient, 'callAll' | 'cluster'>): Promise<readonly string[]> {
  const replies = (await redis.callAll('INFO', 'everything')) as string[];
  for (const info of replies) {
    const field = (name: string) => fieldOf(info, name);
    const version = field('redis_version') ?? '0';
    if (Number.parseInt(version, 10) < 7)
      throw new RedisSetupError(`Redis ${version} is not supported: version 7.0 or later is required`);
    // In a Cluster, and with Sentinel, the master is found again after a failover.
    if (!redis.cluster && field('role') === 'slave') {
      throw new RedisSetupError(
        'this server is a replica, which rejects writes: set SLUICE_REDIS_URL to the address of the master',
      );
    }
    const policy = field('maxmemory_policy');
    if (policy !== 'noeviction') {
      throw new RedisSetupError(
        `maxmemory-policy is ${policy}: set it to noeviction because Redis would otherwise remove gates and events when it is out of memory`,
      );
    }
  }
  return replies;
}

/**
 * Checks Redis at startup. Warns if acknowledged events would not survive a power failure. It also enables lazy
 * freeing. This is repeated after a reconnect because Redis may have been restarted with its configuration file.
 *
 * @throws RedisSetupError with the settings to change
 */
export async function checkRedis(redis: RedisClient, log: Logger): Promise<void> {
  const replies = await checkServers(redis);
  if (replies.some(info => fieldOf(info, 'aof_enabled') !== '1'))
    log.warn(
      'redis does not use an append-only file: accepted events are lost when it is restarted (set appendonly yes and appendfsync always)',
    );
  if (!(await turnLazyFreeingOn(redis, log))) return;
  redis.onReconnect(() => {
    turnLazyFreeingOn(redis, log).catch(error =>
      log.warn({ err: error as Error }, 'lazy freeing could not be checked'),
    );
  });
}

/** Returns false if Redis does not return its settings. */
async function turnLazyFreeingOn(redis: RedisClient, log: Logger): Promise<boolean> {
  const answers = await unlessRefused(redis.callAll('CONFIG', 'GET', ...LAZY_FREEING));
  if (answers === undefined) {
    log.warn(
      `redis does not allow CONFIG, so its settings cannot be checked: set ${SET_THEM} on every node, or Redis may block for several seconds when large keys expire`,
    );
    return false;
  }
  const lacking = LAZY_FREEING.filter(name =>
    (answers as string[][]).some(settings => settings[settings.indexOf(name) + 1] !== 'yes'),
  );
  if (lacking.length === 0) return true;
  const set = await unlessRefused(redis.callAll('CONFIG', 'SET', ...lacking.flatMap(name => [name, 'yes'])));
  if (set === undefined) {
    throw new RedisSetupError(
      `Redis settings are missing, and CONFIG SET is not allowed: set ${SET_THEM} on every node, or Redis may block for several seconds when large keys expire`,
    );
  }
  log.warn(
    `lazy freeing was off and is on until redis restarts: write ${SET_THEM} into redis.conf of every node, replicas as well`,
  );
  return true;
}

/**
 * Returns undefined if Redis rejects the command because it is unknown, or because the user does not have permission.
 */
async function unlessRefused(replying: Promise<Reply[]>): Promise<Reply[] | undefined> {
  try {
    return await replying;
  } catch (error) {
    if (error instanceof Error && /^(NOPERM|ERR) /.test(error.message)) return undefined;
    throw error;
  }
}
