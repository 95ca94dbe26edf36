import { readFileSync } from 'node:fs';

/** The Lua scripts by file name; each file says KEYS, ARGV and answers in its first lines. */
type ScriptFile =
  | 'act'
  | 'bodies'
  | 'catchup'
  | 'debit'
  | 'enqueue'
  | 'exchange'
  | 'expire'
  | 'fields'
  | 'finish'
  | 'fold'
  | 'fold-traffic'
  | 'hashes'
  | 'hinted'
  | 'ingest'
  | 'inspect'
  | 'lead'
  | 'lookup'
  | 'lower'
  | 'metas'
  | 'next'
  | 'oldest'
  | 'own'
  | 'patch'
  | 'permit'
  | 'pick'
  | 'probe'
  | 'prune-traffic'
  | 'pull'
  | 'purge-inbox'
  | 'purge-integration'
  | 'purge-queue'
  | 'purge-tenant'
  | 'recover'
  | 'release'
  | 'reserve'
  | 'route'
  | 'sandbox-count'
  | 'sandbox-enter'
  | 'send-test'
  | 'settle'
  | 'settle-replay'
  | 'sizes'
  | 'survey'
  | 'trim'
  | 'unrouted'
  | 'walk';

/**
 * A script; with `~` behind its name it takes one argument more, the last: when (ms) all of its keys are to end, also those
 * that it has just made.
 */
export type ScriptName = ScriptFile | `${ScriptFile}~`;

const sources = new Map<ScriptName, string>();

const USED = 'KEYS, ARGV, redis, string, table, math, ipairs, pairs, tonumber, unpack';
/** Redis guards what is global: to find it takes as long as most of what is done with it, eight times as long as a local. */
export const LOCALS = `local ${USED} = ${USED} `;

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

function read(name: string): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8');
}

/** Whether a script only reads: it says so itself. */
export function isReading(name: ScriptName): boolean {
  return scriptSource(name).startsWith('#!lua flags=no-writes');
}

/**
 * A script's text, with `--@include name` replaced by `scripts/lib/name.lua`; read once a process. Its second line begins
 * with `LOCALS`, so that lines keep their numbers.
 */
export function scriptSource(name: ScriptName): string {
  let source = sources.get(name);
  if (source === undefined) {
    const ending = name.endsWith('~');
    source = read(ending ? name.slice(0, -1) : name);
    source = source.replace(/^--@include (\w+)$/gm, (_line, lib: string) => read(`lib/${lib}`));
    source = source.replace('\n', `\n${ending ? ENDING_BEFORE : ''}${LOCALS}`) + (ending ? ENDING_AFTER : '');
    sources.set(name, source);
  }
  return source;
}
