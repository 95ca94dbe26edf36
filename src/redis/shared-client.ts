import type { RedisClient, Reply } from './client.ts';
import type { NamedCall, NamedScript } from './named-scripts.ts';
import { splitTimed, timedScript } from './timed-script.ts';

/** The assumed Redis time of a simple command, in microseconds. Commands for parts read a few fields. */
const COMMAND_MICROS = 20;

/**
 * Waits until the call to a master may start. Returns a function that must be called with the Redis time of the call,
 * in microseconds, or undefined if it is not known. Returns undefined for calls without a time limit.
 */
export type TakeTurn = (master: string, kind: string) => Promise<(micros: number | undefined) => void> | undefined;

/**
 * Returns a client whose calls wait for their turn, and whose scripts are timed by Redis. Does not apply to `run`,
 * because its scripts don't read a stream's events.
 */
export function shareTime(redis: RedisClient, takeTurn: TakeTurn): RedisClient {
  async function run(method: 'runNamed' | 'runNamedBuffers', script: NamedScript, call: NamedCall): Promise<Reply> {
    const turn = takeTurn(redis.masterOf(String(call.keys[script.keys[0] as string])), script.name);
    if (turn === undefined) return redis[method](script, call);
    const end = await turn;
    let micros: number | undefined;
    try {
      const timed = splitTimed(await redis[method](timedScript(script), call));
      micros = timed.micros;
      return timed.reply;
    } finally {
      end(micros);
    }
  }

  async function plainly<T>(key: string, kind: string, command: () => Promise<T>): Promise<T> {
    const turn = takeTurn(redis.masterOf(key), kind);
    if (turn === undefined) return command();
    const end = await turn;
    try {
      return await command();
    } finally {
      end(COMMAND_MICROS);
    }
  }

  return {
    ...redis,
    runNamed: (script, call) => run('runNamed', script, call),
    runNamedBuffers: (script, call) => run('runNamedBuffers', script, call),
    call: (command, key, ...args) => plainly(key, 'command', () => redis.call(command, key, ...args)),
    readHash: key => plainly(key, 'command', () => redis.readHash(key)),
  };
}
