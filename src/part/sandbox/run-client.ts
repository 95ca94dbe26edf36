import { sandboxKeys } from '../../redis/keys.ts';
import { type NamedCall, type NamedScript, readNamedScript } from '../../redis/named-scripts.ts';
import type { PartClient } from '../inbox/find-part.ts';
import { PART_NUMBER, type Part } from '../keys.ts';

const NOTE = readNamedScript(new URL('run-note.lua', import.meta.url));

/** Plain commands that a run's client lets through: they write nothing. */
const READING = new Set(['hexists', 'hget', 'hkeys', 'hlen', 'hmget', 'hvals', 'xrange', 'zcard', 'zrange']);

/**
 * Around a script whose keys are to end: in the same step that writes them, so that none outlives a crash. What ends as it
 * should is not written again, so that a script that only looked costs no sync of Redis's file.
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

/** A script with one argument more, the last: when (ms) all of its keys are to end, also those that it has just made. */
function endingScript(script: NamedScript): NamedScript {
  let ending = endingScripts.get(script);
  if (ending === undefined) {
    const source = `${script.source.replace('\n', `\n${ENDING_BEFORE}`)}\n${ENDING_AFTER}`;
    ending = { ...script, source, takesMore: true };
    endingScripts.set(script, ending);
  }
  return ending;
}

/** The part of a stream within a run. Its generation is none of production's, and so are the ids of events made of it. */
export function partOfRun(tenant: string, queue: string): Part {
  return { tenant, queue, gen: 'run', number: PART_NUMBER };
}

/** Redis as one run sees it. */
export interface RunClient extends PartClient {
  /** Writes fields of a hash of the run. `HSETNX` leaves those that it has. */
  readonly note: (command: 'HSET' | 'HSETNX', key: string, fields: readonly (string | number)[]) => Promise<void>;
}

/**
 * Redis as one sandbox run sees it: every key lies in the run's own slot, and ends with the run, whatever script makes it.
 * What is built upon a client works on the run then as it does on production, and cannot reach production.
 *
 * @param endsMs when the run ends, ms of Redis's clock
 * @throws for a plain command that writes: its key would stay for ever
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
