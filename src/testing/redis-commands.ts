import { textOf } from './source-files.ts';

/** The access of a command to its keys: reads, writes, both, or neither if the command only checks if a key exists. */
export const KEY_ACCESS: Readonly<Record<string, 'R' | 'W' | 'RW' | ''>> = {
  DEL: 'W',
  EXISTS: '',
  HDEL: 'W',
  HEXISTS: '',
  HGET: 'R',
  HGETALL: 'R',
  HINCRBY: 'RW',
  HKEYS: 'R',
  HLEN: '',
  HMGET: 'R',
  HSCAN: 'R',
  HSET: 'W',
  HSETNX: 'W',
  HSTRLEN: '',
  HVALS: 'R',
  PERSIST: 'W',
  PEXPIRE: 'W',
  PEXPIREAT: 'W',
  PEXPIRETIME: 'R',
  SADD: 'W',
  SISMEMBER: '',
  SMEMBERS: 'R',
  SREM: 'W',
  UNLINK: 'W',
  XADD: 'W',
  XINFO: 'R',
  XLEN: '',
  XRANGE: 'R',
  XREVRANGE: 'R',
  XTRIM: 'W',
  ZADD: 'W',
  ZCARD: '',
  ZCOUNT: 'R',
  ZLEXCOUNT: 'R',
  ZMSCORE: 'R',
  ZRANGE: 'R',
  ZRANGEBYLEX: 'R',
  ZRANGEBYSCORE: 'R',
  ZREM: 'W',
  ZREMRANGEBYSCORE: 'W',
  ZREVRANGEBYLEX: 'R',
  ZSCORE: 'R',
};

/** Files which do not belong to a role and load all roles. */
const LOADS_ROLES = 'roles/roles.ts';

/** Returns all files loaded by `start`, except for files which are only imported as types. */
export function loadedWith(start: readonly string[]): ReadonlySet<string> {
  const loaded = new Set<string>();
  const open = [...start];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (loaded.has(file) || file === LOADS_ROLES) continue;
    loaded.add(file);
    for (const [, names = '', path = '', lazy = ''] of textOf(file).matchAll(
      /^(?:import|export)\s+(?!type\b)([^;]*?)\s+from '(\.[^']+\.ts)'|\bimport\('(\.[^']+)'\)/gm,
    )) {
      const areTypes = /^\{\s*type /.test(names) && !/[{,]\s*(?!type |\})\w/.test(names);
      if (!areTypes) open.push(pathFrom(file, path || lazy));
    }
  }
  return loaded;
}

function pathFrom(file: string, path: string): string {
  return new URL(path, `file:///${file}`).pathname.slice(1);
}

/** Returns the paths of all scripts that are run by these files. */
export function scriptsOf(files: Iterable<string>): readonly string[] {
  const scripts = new Set<string>();
  for (const file of files) {
    const text = textOf(file);
    for (const [, path = ''] of text.matchAll(/readNamedScript\(new URL\('([^']+)'/g))
      scripts.add(pathFrom(file, path));
    if (text.includes('const script = (name: string)')) {
      for (const [, name = ''] of text.matchAll(/\bscript\('([^']+)'\)/g)) scripts.add(pathFrom(file, `${name}.lua`));
    }
    for (const [, name = ''] of text.matchAll(/\.run(?:Buffers)?\(\s*'([^']+)'/g))
      scripts.add(`redis/scripts/${name}.lua`);
  }
  return [...scripts].toSorted();
}

/** Returns the script text including all included files, without comments. */
export function scriptText(script: string): string {
  return textOf(script)
    .replaceAll(/^--@include (\S+)$/gm, (_, name: string) =>
      textOf(pathFrom(script, name.endsWith('.lua') ? name : `lib/${name}.lua`)),
    )
    .replaceAll(/--(?!@).*$/gm, '');
}

/** The names of commands in quotes. Some of them are passed to scripts as arguments. */
const QUOTED = new RegExp(`'(${Object.keys(KEY_ACCESS).join('|')})'`, 'g');

/** Returns all commands sent to Redis by these files, in uppercase. Includes commands used in scripts. */
export function commandsOf(files: Iterable<string>): ReadonlySet<string> {
  const all = [...files];
  const commands = new Set<string>();
  const add = (text: string, pattern: RegExp) => {
    for (const [, name = ''] of text.matchAll(pattern)) commands.add(name.toUpperCase());
  };
  for (const file of all) {
    const text = textOf(file);
    add(text, QUOTED);
    add(text, /\.(?:call|callAll)\('(\w+)'/g);
    add(text, /\bredis\.((?:s?un|s|p)?subscribe|s?publish)\(/g);
    if (text.includes('.readHash(')) commands.add('HGETALL');
  }
  for (const script of scriptsOf(all)) {
    const text = scriptText(script);
    add(text, QUOTED);
    add(text, /redis\.p?call\('(\w+)'/g);
  }
  return commands;
}

/** Matches the expressions with which a script refers to a key in a list of keys. */
const LISTED = String.raw`(?:KEYS\[at\]|keyOfHour\(hour\))`;

/** A call to Redis that uses a command and its key. */
const callsWith = (key: string) =>
  new RegExp(String.raw`(?:redis\.p?call|inSlices)\(\s*'(\w+)', (?:'STREAM', )?${key}`, 'g');

/** Returns the commands used by a script for the given key, including functions that receive the key. */
function commandsWith(key: string, text: string): string[] {
  const commands = [...text.matchAll(callsWith(key))].map(([, command = '']) => command);
  for (const [, name, parameters = '', body = ''] of text.matchAll(
    /^local function (\w+)\(([^)]*)\)( .* end$|[\s\S]*?^end)/gm,
  )) {
    for (const [at, parameter] of parameters.split(/, */).entries()) {
      const given = new RegExp(String.raw`\b${name}\((?:[^,()]*,){${at}} *${key}`);
      if (given.test(text)) commands.push(...commandsWith(String.raw`${parameter}\b`, body));
    }
  }
  return commands;
}

/** Returns the commands used in a script for each key, e.g. `meta`. */
export function keysOfScript(script: string): ReadonlyMap<string, ReadonlySet<string>> {
  const text = scriptText(script);
  const onlyReads = text.startsWith('#!lua flags=no-writes');
  // Note that included functions are allowed to write, but they are not called here.
  const mayRun = (command: string) => !onlyReads || !KEY_ACCESS[command]?.includes('W');
  const names = /^--@keys (.+)$/m.exec(text)?.[1]?.split(' ') ?? [];
  return new Map(
    names.map(name => {
      const key = name.endsWith('*') ? LISTED : String.raw`KEY_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}\b`;
      return [name.replace('*', ''), new Set(commandsWith(key, text).filter(mayRun))];
    }),
  );
}
