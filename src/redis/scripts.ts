import { readFileSync } from 'node:fs';

/** The Lua scripts by file name; each file says KEYS, ARGV and answers in its first lines. */
export type ScriptName =
  | 'act'
  | 'debit'
  | 'fields'
  | 'fold-traffic'
  | 'hashes'
  | 'hinted'
  | 'lead'
  | 'lower'
  | 'patch'
  | 'pick'
  | 'probe'
  | 'prune-traffic'
  | 'purge-inbox'
  | 'purge-integration'
  | 'purge-queue'
  | 'purge-tenant'
  | 'settle'
  | 'settle-replay';

const sources = new Map<ScriptName, string>();

const USED = 'KEYS, ARGV, redis, string, table, math, ipairs, pairs, tonumber, unpack';
/** Redis guards what is global: to find it takes as long as most of what is done with it, eight times as long as a local. */
export const LOCALS = `local ${USED} = ${USED} `;

function read(name: string): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8');
}

/**
 * A script's text, with `--@include name` replaced by `scripts/lib/name.lua`; read once a process. Its second line begins
 * with `LOCALS`, so that lines keep their numbers.
 */
export function scriptSource(name: ScriptName): string {
  let source = sources.get(name);
  if (source === undefined) {
    source = read(name);
    source = source.replace(/^--@include (\w+)$/gm, (_line, lib: string) => read(`lib/${lib}`));
    source = source.replace('\n', `\n${LOCALS}`);
    sources.set(name, source);
  }
  return source;
}
