import type { Logger } from '../telemetry/log.ts';
import type { RedisClient, Reply } from './client.ts';

/** The Redis settings do not meet Sluice's requirements. */
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
export const fieldOf = (info: string, name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];

/**
 * Checks every master: Redis 7 and `noeviction` (other policies remove gates and events when memory is low). Repeat
 * this check because a failover, or a change of a DNS name, may lead to a server with other settings.
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
 * Checks Redis at startup. Warns if acknowledged events would not survive a restart or a power failure. Also enables
 * lazy freeing. The check is repeated after a reconnect, because Redis may have been restarted with its configuration
 * file.
 *
 * @returns a function to repeat this. A setting can be changed, and a failover may lead to a server with other settings
 * @throws RedisSetupError with the settings to change
 */
export async function checkRedis(redis: RedisClient, log: Logger): Promise<() => void> {
  const noteLoss = createLossWarning(log);
  let canRead = true;

  async function check(replies: readonly string[]): Promise<void> {
    const answers = canRead ? await readSettings(redis) : undefined;
    noteLoss(replies, answers);
    if (answers !== undefined) return turnLazyFreeingOn(redis, answers, log);
    if (!canRead) return;
    canRead = false;
    log.warn(
      `redis does not allow CONFIG, so its settings cannot be checked: set ${SET_THEM} on every node, or Redis may block for several seconds when large keys expire`,
    );
  }

  async function checkAgain(): Promise<void> {
    try {
      await check((await redis.callAll('INFO', 'persistence')) as string[]);
    } catch (error) {
      // If Redis is unavailable, this is reported elsewhere.
      const level = error instanceof RedisSetupError ? 'warn' : 'debug';
      log[level]({ err: error as Error }, 'redis settings could not be checked');
    }
  }

  await check(await checkServers(redis));
  redis.onReconnect(() => void checkAgain());
  return () => void checkAgain();
}

/** The values of settings by name, for each master. */
type Settings = readonly ReadonlyMap<string, string>[];

/** Returns the settings of all masters, or undefined if Redis does not return them. */
async function readSettings(redis: RedisClient): Promise<Settings | undefined> {
  const answers = await unlessRefused(redis.callAll('CONFIG', 'GET', ...LAZY_FREEING, 'appendfsync'));
  return (answers as string[][] | undefined)?.map(
    each => new Map(each.flatMap((name, i) => (i % 2 === 0 ? [[name, each[i + 1] as string]] : []))),
  );
}

/** Returns a function that warns about settings that can lose acknowledged events, once until they have changed. */
function createLossWarning(log: Logger): (replies: readonly string[], settings: Settings | undefined) => void {
  let last = '';
  return (replies, settings) => {
    let warning = '';
    if (replies.some(info => fieldOf(info, 'aof_enabled') !== '1')) {
      warning =
        'redis does not use an append-only file: accepted events are lost when it is restarted (set appendonly yes and appendfsync always)';
    } else if (settings?.some(each => each.get('appendfsync') !== 'always') === true) {
      warning =
        'redis does not write each event to disk before it responds: events accepted just before a power failure are lost (set appendfsync always)';
    }
    if (warning !== '' && warning !== last) log.warn(warning);
    last = warning;
  };
}

async function turnLazyFreeingOn(redis: RedisClient, settings: Settings, log: Logger): Promise<void> {
  const lacking = LAZY_FREEING.filter(name => settings.some(each => each.get(name) !== 'yes'));
  if (lacking.length === 0) return;
  const set = await unlessRefused(redis.callAll('CONFIG', 'SET', ...lacking.flatMap(name => [name, 'yes'])));
  if (set === undefined) {
    throw new RedisSetupError(
      `Redis settings are missing, and CONFIG SET is not allowed: set ${SET_THEM} on every node, or Redis may block for several seconds when large keys expire`,
    );
  }
  log.warn(
    `lazy freeing was off and is on until redis restarts: write ${SET_THEM} into redis.conf of every node, replicas as well`,
  );
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
