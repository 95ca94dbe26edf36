import { sandboxKeys } from '../../redis/keys.ts';
import { type NamedCall, type NamedScript, readNamedScript } from '../../redis/named-scripts.ts';
import type { PartClient } from '../inbox/find-part.ts';
import { PART_NUMBER, type Part } from '../keys.ts';

const NOTE = readNamedScript(new URL('run-note.lua', import.meta.url));

/** Read-only commands that the client of a run allows. */
const READING = new Set(['hexists', 'hget', 'hkeys', 'hlen', 'hmget', 'hvals', 'xrange', 'zcard', 'zrange']);

/**
 * Wraps a script so that the expiry of its keys is set in the same step in which they are written, which ensures that
 * no keys are left after a crash. Keys with the right expiry are left alone, so read-only scripts cause no disk sync in
 * Redis.
 */
const ENDING_BEFORE = 'local endsMs = tonumber(table.remove(ARGV)) local function body() ';
const ENDING_AFTER = `end
local reply = body()
for _, key in ipairs(KEYS) do
  local ends = redis.call('PEXPIRETIME', key)
  if ends ~= -2 and ends ~= endsMs then redis.call('PEXPIREAT', key, string.format('%.0f', endsMs)) end
end
return reply
`;

const endingScripts = new Map<NamedScript, NamedScript>();

/**
 * A script that has an additional argument at the end: the expiry of all of its keys (in milliseconds), including new
 * keys.
 */
function endingScript(script: NamedScript): NamedScript {
  let ending = endingScripts.get(script);
  if (ending === undefined) {
    const source = `${script.source.replace('\n', `\n${ENDING_BEFORE}`)}\n${ENDING_AFTER}`;
    ending = { ...script, source, takesMore: true };
    endingScripts.set(script, ending);
  }
  return ending;
}

/**
 * The part of a stream in a run. Since its generation is different from production, the event ids are different as
 * well.
 */
export function partOfRun(tenant: string, queue: string): Part {
  return { tenant, queue, gen: 'run', number: PART_NUMBER };
}

/** Redis in the way it is seen by a single run. */
export interface RunClient extends PartClient {
  /** Writes fields in a hash of the run. If `HSETNX` is used, existing fields are kept. */
  readonly note: (command: 'HSET' | 'HSETNX', key: string, fields: readonly (string | number)[]) => Promise<void>;
}

/**
 * A Redis client which is limited to a single sandbox run. All of the keys are in the slot of the run, and will expire
 * together with it. Code that uses this client works as it does in production, but cannot access production data.
 *
 * @param endsMs end of the run, in ms of Redis's clock
 * @throws if this is a plain command for writing, because its key would not expire
 */
export function createRunClient(redis: PartClient, tenant: string, run: string, endsMs: number): RunClient {
  const { of } = sandboxKeys(tenant, run);
  const own = (key: string): string => (key.startsWith('{s:') ? key : of(key));

  function prepare(script: NamedScript, { keys, listed, more = [], ...call }: NamedCall): [NamedScript, NamedCall] {
    const named = Object.fromEntries(script.keys.map(name => [name, own(String(keys[name]))]));
    const owned = { ...call, keys: named, ...(listed === undefined ? {} : { listed: listed.map(own) }) };
    if (!script.source.startsWith('#!lua flags=no-writes')) {
      return [endingScript(script), { ...owned, more: [...more, endsMs] }];
    }
    return [script, more.length === 0 ? owned : { ...owned, more }];
  }

  const client: PartClient = {
    runNamed: (script, call) => redis.runNamed(...prepare(script, call)),
    runNamedBuffers: (script, call) => redis.runNamedBuffers(...prepare(script, call)),
    call: (command, key, ...args) => {
      if (!READING.has(command.toLowerCase())) throw new Error(`${command} would write without an end`);
      return redis.call(command, own(key), ...args);
    },
    readHash: key => redis.readHash(own(key)),
  };
  return {
    ...client,
    async note(command, hash, fields) {
      if (fields.length === 0) return;
      await client.runNamed(NOTE, { keys: { hash }, args: { command }, more: fields });
    },
  };
}
