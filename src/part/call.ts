import type { RedisClient, Reply } from '../redis/client.ts';
import type { NamedCall, NamedScript } from '../redis/named-scripts.ts';

/**
 * What the scripts of a part answer: always an array whose first element is a word. With OK the rest follows, as the script
 * says in its first lines; with any other word nothing was written, unless the script says otherwise.
 *
 * - OK
 * - GONE: there is no such part, or it is of another generation
 * - STALE: the caller's configuration is not that of the part
 * - CLOSED: the part takes no events; of an exchange or an advance: control data are missing
 * - FENCED: a newer controller leads
 * - HELD: somebody else is at work
 * - LATE: the caller has made a later call before this one
 * - CLOCK: the caller's clock is an hour or more from that of the part
 *
 * Every script takes the time itself, from TIME.
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
