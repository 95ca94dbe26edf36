import { createHash } from 'node:crypto';
import { globSync, readdirSync } from 'node:fs';
import { readNamedScript } from '../../src/redis/named-scripts.ts';
import { type ScriptName, scriptSource } from '../../src/redis/scripts.ts';
import { monitorRedis } from './redis-monitor.ts';

const SCRIPTS = new URL('../../src/redis/scripts/', import.meta.url);
const PARTS = new URL('../../src/part/', import.meta.url);

const shaOf = (source: string) => createHash('sha1').update(source).digest('hex');

/** SHA-1 of each of our scripts → its name. */
const NAMES = new Map([
  ...readdirSync(SCRIPTS)
    .filter(file => file.endsWith('.lua'))
    .map(file => {
      const name = file.slice(0, -'.lua'.length);
      return [shaOf(scriptSource(name as ScriptName)), name] as const;
    }),
  ...globSync('**/*.lua', { cwd: PARTS }).map(file => {
    const { name, source } = readNamedScript(new URL(file, PARTS));
    return [shaOf(source), name] as const;
  }),
]);

/** What a controller asks for at all times, whether or not anything changes. */
const AT_ALL_TIMES = new Set(['time', 'ping', 'info', 'hgetall {c}:meta', 'monitor', 'client', 'hello', 'select']);

/** A command as it is counted: a script by its name, and so is what it is asked for at all times. */
export function nameCommand([command = '', first = '']: readonly string[]): string | undefined {
  const word = command.toLowerCase();
  if (AT_ALL_TIMES.has(word) || AT_ALL_TIMES.has(`${word} ${first}`)) return undefined;
  if (word !== 'evalsha' && word !== 'eval') return word;
  const name = word === 'evalsha' ? (NAMES.get(first) ?? first) : 'eval';
  return name;
}

export interface CommandRecorder {
  /** Commands that clients sent since the last call, scripts as one, in order. */
  readonly take: () => string[];
  readonly close: () => void;
}

/** Listens to all that one Redis is asked for. */
export async function recordCommands(url: string): Promise<CommandRecorder> {
  let taken: string[] = [];
  const close = await monitorRedis(url, (args, source) => {
    if (source === 'lua') return;
    const name = nameCommand(args);
    if (name !== undefined) taken.push(name);
  });
  return {
    take: () => {
      const those = taken;
      taken = [];
      return those;
    },
    close,
  };
}
