import type { GeneratedFile } from '../generate.ts';
import { REDIS_RIGHTS, type RedisRights, type RedisUser } from './rights.ts';

/** The path of the file with the Redis users. */
export const ACL_FILE = 'config/redis/users.acl';

/**
 * The key pattern for running scripts. Scripts may be called with any key because the permission to call a script does
 * not include the commands in the script. Otherwise, Redis would require permission to read and write all keys of the
 * script.
 */
const SCRIPTS = '(~* +evalsha +eval)';

export const REDIS_USERS = Object.keys(REDIS_RIGHTS) as readonly RedisUser[];

/** Returns the user of a component, e.g. `sluice-ingress`. */
export function redisUserOf(component: RedisUser): string {
  return `sluice-${component}`;
}

/** Returns the commands in lowercase, with `|` before a subcommand. */
export function grantedCommands({ commands }: RedisRights): readonly string[] {
  return [...new Set(commands.flatMap(text => text.split(' ')))].toSorted();
}

/**
 * Returns a user's rules. They replace all earlier permissions, but not the passwords. A user without a password
 * cannot log in.
 */
export function aclRules(rights: RedisRights): readonly string[] {
  const { writes, removes = [], reads, channels } = rights;
  return [
    'on',
    'clearselectors',
    'resetkeys',
    'resetchannels',
    '-@all',
    ...grantedCommands(rights).map(command => `+${command}`),
    ...writes.map(pattern => `~${pattern}`),
    ...removes.map(pattern => `%W~${pattern}`),
    ...reads.map(pattern => `%R~${pattern}`),
    ...channels.map(pattern => `&${pattern}`),
    SCRIPTS,
  ];
}

/** Renders the users in `aclfile` format, which does not support comments. */
export function renderRedisAcl(): GeneratedFile {
  const lines = REDIS_USERS.map(user => ['user', redisUserOf(user), ...aclRules(REDIS_RIGHTS[user])].join(' '));
  return { path: ACL_FILE, text: `${lines.join('\n')}\n` };
}
