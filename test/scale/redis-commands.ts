import { createHash } from 'node:crypto';
import { globSync, readdirSync } from 'node:fs';
import { readNamedScript } from '../../src/redis/named-scripts.ts';
import { type ScriptName, scriptSource } from '../../src/redis/scripts.ts';
import { monitorRedis } from './redis-monitor.ts';

const SCRIPTS = new URL('../../src/redis/scripts/', import.meta.url);
const PARTS = new URL('../../src/part/', import.meta.url);

const shaOf = (source: string) => createHash('sha1').update(source).digest('hex');

/** The name of each script by its SHA-1. */
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

/** Background commands that a controller sends even if nothing changes. */
const AT_ALL_TIMES = new Set(['time', 'ping', 'info', 'hgetall {c}:meta', 'monitor', 'client', 'hello', 'select']);

/**
 * Returns the name used for counting a command, which is the script name for scripts. Undefined for background
 * commands.
 */
export function nameCommand([command = '', first = '']: readonly string[]): string | undefined {
  const word = command.toLowerCase();
  if (AT_ALL_TIMES.has(word) || AT_ALL_TIMES.has(`${word} ${first}`)) return undefined;
  if (word !== 'evalsha' && word !== 'eval') return word;
  const name = word === 'evalsha' ? (NAMES.get(first) ?? first) : 'eval';
  return name;
}

export interface CommandRecorder {
  /** Returns the commands sent by clients since the last call, in order. Each script is one command. */
  readonly take: () => string[];
  readonly close: () => void;
}

/** Records the commands that clients send to a Redis server. */
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
