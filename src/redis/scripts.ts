import { readFileSync } from 'node:fs';

/** The Lua scripts by file name; each file says KEYS, ARGV and answers in its first lines. */
export type ScriptName =
  | 'act'
  | 'bodies'
  | 'catchup'
  | 'claim'
  | 'complete'
  | 'debit'
  | 'enqueue'
  | 'expire'
  | 'fields'
  | 'finish'
  | 'fold'
  | 'hashes'
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
  | 'pull'
  | 'purge-inbox'
  | 'purge-integration'
  | 'purge-queue'
  | 'purge-tenant'
  | 'release'
  | 'reserve'
  | 'route'
  | 'settle'
  | 'settle-replay'
  | 'sizes'
  | 'survey'
  | 'trim'
  | 'unrouted'
  | 'walk';

const sources = new Map<ScriptName, string>();

function read(name: string): string {
  return readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8');
}

/** A script's text, with `--@include name` replaced by `scripts/lib/name.lua`; read once a process. */
export function scriptSource(name: ScriptName): string {
  let source = sources.get(name);
  if (source === undefined) {
    source = read(name).replace(/^--@include (\w+)$/gm, (_line, lib: string) => read(`lib/${lib}`));
    sources.set(name, source);
  }
  return source;
}
