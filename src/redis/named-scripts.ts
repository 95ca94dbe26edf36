import { readFileSync } from 'node:fs';
import { LOCALS } from './scripts.ts';

/**
 * A script next to its only caller, with named keys and arguments:
 *
 * - `--@keys meta log ids*` declares its keys, as locals `KEY_META`, `KEY_LOG`; a star, allowed at the last one,
 *   declares a list, whose first index in KEYS is `FIRST_IDS`.
 * - `--@args gen limit ...` declares its arguments, as locals `ARG_GEN`, `ARG_LIMIT`; dots at the end allow more of
 *   them, whose first index in ARGV is `FIRST`.
 * - `--@include ../lanes/lanes.lua` is replaced by that file.
 * - `--@unconfirmed` marks a script that is done before replicas have confirmed its writes
 * (`SLUICE_REDIS_WAIT_REPLICAS`).
 *
 * The code after the arguments becomes a separate function. When Lua creates a function, it searches the open variables
 * of the enclosing function for each one that the new function uses. Since keys and arguments are used most frequently,
 * they would be found last. In addition, a function may have 200 locals.
 */
export interface NamedScript {
  readonly name: string;
  readonly source: string;
  readonly keys: readonly string[];
  /** The name of the key list, which comes after all other keys. */
  readonly listedKeys: string | undefined;
  readonly args: readonly string[];
  readonly takesMore: boolean;
}

export interface NamedKeys {
  readonly [name: string]: unknown;
}

/** The keys and arguments of a call, by their declared names. Keys that have not been declared are not included. */
export interface NamedCall {
  readonly keys: NamedKeys;
  /** The keys of the list at the end. */
  readonly listed?: readonly string[];
  readonly args: Readonly<Record<string, string | number | Buffer>>;
  readonly more?: readonly (string | number | Buffer)[];
}

const local = (kind: 'KEY' | 'ARG', name: string) => `${kind}_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}`;

/** Declares local variables for all values of a Lua table in a single line. */
function namesOf(kind: 'KEY' | 'ARG', names: readonly string[], table: string): string {
  if (names.length === 0) return '';
  return `local ${names.map(name => local(kind, name)).join(', ')} = unpack(${table}, 1, ${names.length}) `;
}

function wordsAfter(mark: string, source: string): string[] {
  const line = new RegExp(`^--@${mark} (.+)$`, 'm').exec(source)?.[1];
  return line === undefined ? [] : line.trim().split(/\s+/);
}

const INNER = 'return (function()';
const INNER_END = 'end)()\n';

/** Reads a script with named keys and arguments. Line numbers are preserved up to the first include. */
export function readNamedScript(url: URL): NamedScript {
  const text = readFileSync(url, 'utf8');
  const keys = wordsAfter('keys', text);
  const args = wordsAfter('args', text);
  const listedKeys = keys.at(-1)?.endsWith('*') ? keys.pop()?.slice(0, -1) : undefined;
  const takesMore = args.at(-1) === '...' && args.pop() !== undefined;
  const list = listedKeys === undefined ? '' : `local FIRST_${listedKeys.toUpperCase()} = ${keys.length + 1} `;
  const more = takesMore ? `local FIRST = ${args.length + 1} ` : '';
  const source = text
    .replace('\n', `\n${LOCALS}`)
    .replace(/^--@keys .*$/m, namesOf('KEY', keys, 'KEYS') + list)
    .replace(/^--@args .*$/m, `${namesOf('ARG', args, 'ARGV')}${more}${INNER}`)
    .replace(/^--@include (\S+)$/gm, (_line, path: string) => readFileSync(new URL(path, url), 'utf8'))
    .concat(args.length > 0 || takesMore ? INNER_END : '');
  const name = url.pathname.replace(/^.*\//, '').replace(/\.lua$/, '');
  return { name, source, keys, listedKeys, args, takesMore };
}

/** Returns the KEYS and ARGV of a call, in the order of their declarations. Throws if the names do not match. */
export function orderCall(script: NamedScript, call: NamedCall): [keys: string[], args: (string | number | Buffer)[]] {
  const fail = (what: string) => new Error(`script ${script.name}: ${what}`);
  const keys = script.keys.map(name => {
    const key = call.keys[name];
    if (typeof key !== 'string') throw fail(`no key ${name}`);
    return key;
  });
  if (call.listed !== undefined) {
    if (script.listedKeys === undefined) throw fail('takes no list of keys');
    keys.push(...call.listed);
  }
  const args = script.args.map(name => {
    const value = call.args[name];
    if (value === undefined) throw fail(`no argument ${name}`);
    return value;
  });
  for (const name in call.args) if (!script.args.includes(name)) throw fail(`takes no argument ${name}`);
  if (call.more !== undefined) {
    if (!script.takesMore) throw fail('takes no more arguments');
    for (const value of call.more) args.push(value);
  }
  return [keys, args];
}
