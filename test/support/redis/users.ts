import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { aclRules, REDIS_USERS, redisUserOf } from '../../../tools/generate/redis/acl.ts';
import { REDIS_RIGHTS, type RedisUser } from '../../../tools/generate/redis/rights.ts';

/** The password of each Sluice user on the test servers. */
export const PASSWORD = 'secret';

/**
 * Writes the users of Sluice with additional rules, and a default user with all permissions. Returns the arguments of
 * redis-server.
 */
export async function writeUsers(folder: string, more: readonly string[]): Promise<readonly string[]> {
  const path = join(folder, 'users.acl');
  const lines = REDIS_USERS.map(
    user => `user ${redisUserOf(user)} ${[...aclRules(REDIS_RIGHTS[user]), ...more].join(' ')} >${PASSWORD}`,
  );
  await writeFile(path, `${['user default on nopass ~* &* +@all', ...lines].join('\n')}\n`);
  return ['--aclfile', path];
}

/** Returns the URL for a Sluice user. */
export function urlAs(user: RedisUser, url: string): string {
  return url.replaceAll('redis://', `redis://${redisUserOf(user)}:${PASSWORD}@`);
}

/** The denied command that each role sends at startup. The roles do not require its response. */
const EXPECTED = 'command config|get (toplevel)';

/** Returns the commands that were denied for Sluice users since the server was started. */
export async function denialsOn(server: {
  readonly command: (name: string, ...args: string[]) => Promise<unknown>;
}): Promise<readonly string[]> {
  const entries = (await server.command('ACL', 'LOG', '128')) as (string | number)[][];
  return entries.flatMap(entry => {
    const of = (field: string) => `${entry[entry.indexOf(field) + 1]}`;
    if (!of('username').startsWith('sluice-')) return [];
    const denial = `${of('reason')} ${of('object')} (${of('context')})`;
    return denial === EXPECTED ? [] : [`${of('username')}: ${denial}`];
  });
}
