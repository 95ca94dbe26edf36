import type { RedisClient, Reply } from '../redis/client.ts';
import type { NamedCall, NamedScript } from '../redis/named-scripts.ts';

/**
 * The replies that can be returned by a part's scripts. A reply is an array that starts with a word. If this is
 * OK, the array contains the values which are described at the top of the script. For any other word, the script has
 * not written anything unless documented otherwise.
 *
 * - OK
 * - GONE: the part does not exist, or has another generation
 * - STALE: the caller has another version of the configuration
 * - CLOSED: the part does not accept events, or (for exchange and advance) control data is missing
 * - FENCED: a newer controller leads
 * - HELD: another process works on the part
 * - LATE: Redis has already processed a later call of this caller
 * - CLOCK: the caller's clock differs from the part's clock by an hour or more
 *
 * All scripts use TIME to read the time.
 */
export type Word = 'OK' | 'GONE' | 'STALE' | 'CLOSED' | 'FENCED' | 'HELD' | 'LATE' | 'CLOCK';

export type ScriptClient = Pick<RedisClient, 'runNamed' | 'runNamedBuffers'>;

export async function callScript(
  redis: ScriptClient,
  script: NamedScript,
  call: NamedCall,
): Promise<readonly [Word, ...Reply[]]> {
  return (await redis.runNamed(script, call)) as [Word, ...Reply[]];
}

/** The same with bulk strings as Buffers, but for the word. */
export async function callForBuffers(
  redis: ScriptClient,
  script: NamedScript,
  call: NamedCall,
): Promise<readonly [Word, ...Reply[]]> {
  const [word, ...rest] = (await redis.runNamedBuffers(script, call)) as [Buffer, ...Reply[]];
  return [word.toString('latin1') as Word, ...rest];
}
