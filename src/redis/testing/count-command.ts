import type { RedisClient } from '../client.ts';

/** The number of times that Redis has run a command. Includes commands in scripts, and all tests of this worker. */
export async function countCommand(redis: RedisClient, command: string): Promise<number> {
  const replies = (await redis.callAll('INFO', 'commandstats')) as string[];
  const calls = new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm');
  return replies.reduce((sum, reply) => sum + Number(calls.exec(reply)?.[1] ?? 0), 0);
}
