import { describe, expect, test } from 'vitest';
import { partKeys } from '../src/part/keys.ts';
import { accountKeys, CLUSTER_KEYS, callKeys, sandboxUseKeys, tenantKeys } from '../src/redis/keys.ts';
import { commandsOf, KEY_ACCESS, keysOfScript, loadedWith, scriptsOf } from '../src/testing/redis-commands.ts';
import { grantedCommands } from '../tools/generate/redis/acl.ts';
import { REDIS_RIGHTS, type RedisRights, type RedisUser } from '../tools/generate/redis/rights.ts';

interface Component {
  readonly start: readonly string[];
  /** Commands in modules which a component loads for another purpose. No component may send CONFIG. */
  readonly unused: readonly string[];
  /** Scripts that are never run, or only with keys of sandbox runs. */
  readonly elsewhere: readonly string[];
}

const COMPONENTS: Readonly<Record<Exclude<RedisUser, 'all'>, Component>> = {
  controller: { start: ['main.ts', 'roles/controller.ts'], unused: ['CONFIG'], elsewhere: [] },
  facade: { start: ['main.ts', 'roles/facade.ts'], unused: ['CONFIG', 'SUBSCRIBE'], elsewhere: [] },
  ingress: {
    start: ['main.ts', 'roles/ingress.ts'],
    unused: ['CONFIG', 'DEL', 'SUBSCRIBE'],
    elsewhere: [
      'claims/evict',
      'claims/exchange',
      'fate/former',
      'gate/gate',
      'inbox/details',
      'stored/cluster-stored',
    ],
  },
  dispatcher: {
    start: ['main.ts', 'roles/dispatcher.ts'],
    unused: ['CONFIG', 'DEL', 'PING', 'WAIT'],
    elsewhere: ['gate/gate'],
  },
  uninstall: {
    start: ['commands/uninstall.ts'],
    unused: [
      'CONFIG',
      'PING',
      'PUBLISH',
      'WAIT',
      ...Object.keys(KEY_ACCESS).filter(command => KEY_ACCESS[command]?.includes('W')),
    ],
    elsewhere: ['sweep/due', 'sweep/remove', 'sweep/remove-ids'],
  },
};

/** Commands that are sent for each connection, by ioredis or by the check for Redis Cluster or Sentinel. */
const CONNECTION = ['ASKING', 'CLIENT', 'CLUSTER', 'INFO', 'SELECT', 'TIME'];
/** Commands that are granted by the selector for scripts. */
const CALLS_SCRIPTS = ['EVAL', 'EVALSHA'];

const PART_KEYS = partKeys({ tenant: 'ten_a', queue: 'q', gen: 'g', number: 0 });
/** Scripts for slots other than those of a part include the slot in their name. */
const OTHER_SLOTS: Readonly<Record<string, object>> = {
  account: accountKeys('acc_a'),
  tenant: tenantKeys('ten_a'),
  cluster: CLUSTER_KEYS,
  use: sandboxUseKeys('ten_a'),
  run: { hash: '{s:ten_a:run}:meta' },
};
/** The keys of a call with an Idempotency-Key, by their names in its scripts. */
const CALL_KEYS = { ...callKeys('acme', 'ten_a'), call: callKeys('acme', 'ten_a').call('a') };

function sampleKey(script: string, name: string): string {
  const slot = Object.keys(OTHER_SLOTS).find(each => script.includes(`/${each}-`));
  const own = script.startsWith('idempotency/') ? CALL_KEYS : PART_KEYS;
  const keys = (slot === undefined ? own : OTHER_SLOTS[slot]) as Record<string, string | ((n: number) => string)>;
  const key = keys[name];
  return typeof key === 'function' ? key(1) : (key as string);
}

/** Returns whether a Redis glob pattern matches a text. */
function matches(glob: string, text: string): boolean {
  const source = glob.replaceAll(/[{}|.]/g, String.raw`\$&`).replaceAll('*', '.*');
  return new RegExp(`^${source}$`).test(text);
}

function isAllowed({ reads, writes, removes = [] }: RedisRights, key: string, access: string): boolean {
  const has = (patterns: readonly string[]) => patterns.some(pattern => matches(pattern, key));
  if (has(writes)) return true;
  return access === 'R' ? has(reads) : access === 'W' ? has(removes) : access === '' && (has(reads) || has(removes));
}

describe.each(Object.entries(COMPONENTS))('%s', (name, { start, unused, elsewhere }) => {
  const rights = REDIS_RIGHTS[name as RedisUser];
  const files = loadedWith(start);
  const where = 'in tools/generate/redis/rights.ts';

  test('only grants the Redis commands that its code sends', () => {
    const granted = grantedCommands(rights).map(command => (command.split('|')[0] as string).toUpperCase());
    const sent = [...commandsOf(files), ...CONNECTION].filter(
      command => !unused.includes(command) && !CALLS_SCRIPTS.includes(command),
    );
    const problem = `commands of ${name} ${where} (or as unused in this test) differ from what its code sends`;
    expect([...new Set(granted)].toSorted(), problem).toEqual([...new Set(sent)].toSorted());
  });

  test('grants access to the keys of its scripts', () => {
    const denied: string[] = [];
    const scripts = scriptsOf(files).filter(each => !elsewhere.some(other => each === `part/${other}.lua`));
    for (const script of scripts) {
      for (const [key, commands] of keysOfScript(script)) {
        for (const command of commands) {
          if (command === 'SPUBLISH') continue;
          if (!isAllowed(rights, sampleKey(script, key), KEY_ACCESS[command] ?? 'RW')) {
            denied.push(`${script}: ${command} ${key}`);
          }
        }
      }
    }
    expect(denied, `keys of ${name} ${where} are missing keys that its scripts use`).toEqual([]);
    expect(scripts.length).toBeGreaterThan(2);
  });
});

test('only the controller can write keys that affect routing', () => {
  const { keys, subs, endpoints } = PART_KEYS;
  const { meta, keys: ingressKeys, index } = tenantKeys('ten_a');
  for (const key of [keys, subs, endpoints, meta, ingressKeys, index, CLUSTER_KEYS.meta, CLUSTER_KEYS.parts]) {
    const writers = Object.keys(COMPONENTS).filter(name => isAllowed(REDIS_RIGHTS[name as RedisUser], key, 'W'));
    expect(writers, key).toEqual(['controller']);
  }
});

test('all roles in one process have the permissions of each role', () => {
  const { commands: _, ...patterns } = REDIS_RIGHTS.all;
  const granted = grantedCommands(REDIS_RIGHTS.all);
  for (const name of ['controller', 'facade', 'ingress', 'dispatcher'] as const) {
    expect(granted).toEqual(expect.arrayContaining([...grantedCommands(REDIS_RIGHTS[name])]));
    const { writes, reads, channels } = REDIS_RIGHTS[name];
    const sample = (pattern: string) => pattern.replaceAll(/\[\^?(.)[^\]]*\]/g, '$1').replaceAll('*', 'x');
    for (const pattern of [...writes, ...reads])
      expect(isAllowed({ ...patterns, commands: [] }, sample(pattern), 'W')).toBe(true);
    for (const channel of channels) expect(patterns.channels.some(each => matches(each, sample(channel)))).toBe(true);
  }
});
