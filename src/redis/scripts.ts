import { readFileSync } from 'node:fs';

/** The Lua scripts by file name. KEYS, ARGV, and replies are documented at the top of each file. */
export type ScriptName =
  | 'act'
  | 'debit'
  | 'fold-traffic'
  | 'hashes'
  | 'hinted'
  | 'key'
  | 'lead'
  | 'lower'
  | 'mail'
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
/** Redis protects global variables, so reading one takes eight times as long as reading a local. */
export const LOCALS = `local ${USED} = ${USED} `;

function read(name: string): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8');
}

/**
 * Returns the script text, replacing each `--@include name` with `scripts/lib/name.lua`. Each process only reads a
 * script once. `LOCALS` is inserted into its second line to preserve line numbers.
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
