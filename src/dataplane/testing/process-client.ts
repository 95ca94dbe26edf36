import type { RedisClient, Reply } from '../../redis/client.ts';
import type { NamedCall, NamedScript } from '../../redis/named-scripts.ts';
import type { ScriptName } from '../../redis/scripts.ts';
import type { Aside, Step } from './interleaving.ts';

/** Observes every call to a script when it is made, including its first key and the word that it returned. */
export type Witness = (name: string, meta: string, reply: Reply) => void;

/**
 * The messages between the processes of a single test. Each listener will receive them in order. The time is determined
 * by its ear.
 */
export function createWire() {
  const listeners: ((channel: string, message: string) => void)[] = [];
  return {
    publish: (channel: string, message: string): void => {
      for (const listener of listeners) listener(channel, message);
    },
    listen: (listener: (channel: string, message: string) => void): void => void listeners.push(listener),
  };
}

export type Wire = ReturnType<typeof createWire>;

/**
 * Separates the hints, messages, and cluster keys. Without this, all tests that use the same Redis would share them.
 */
const SHARED_SCRIPTS: ReadonlySet<ScriptName> = new Set(['lower', 'pick', 'settle']);

export interface ProcessClientOptions {
  readonly redis: RedisClient;
  /** The state that is shared by several processes of a test. */
  readonly unique: string;
  readonly wire: Wire;
  /** The partition of the hints that should be used. All other partitions remain empty. */
  readonly partition: number;
  /** Specifies which scripts and commands are steps. Everything else is done immediately. */
  readonly steps: ReadonlySet<string>;
  readonly step: Step;
  readonly aside?: Aside;
  /** Delivers messages to this process. Defaults to immediate delivery. */
  readonly hear?: (deliver: () => void) => void;
  readonly witness?: Witness;
}

/** The Redis connection of a single process. The order of its calls is determined by a schedule. */
export function createProcessClient(options: ProcessClientOptions): RedisClient {
  const { redis, unique, wire, step } = options;
  const aside: Aside = options.aside ?? (call => call());

  function keyOf(key: string): string {
    return key.startsWith('{c}') ? `${key}:${unique}` : key;
  }

  function through<T>(name: string, key: string, call: () => Promise<T>): Promise<T> {
    return options.steps.has(name) ? step(`${name} ${key.slice(1, 2)}`, call) : aside(call);
  }

  async function run(name: ScriptName, keys: readonly string[], args: Parameters<RedisClient['run']>[2]) {
    const first = keys[0] as string;
    if (name === 'pick' && !first.includes(`:${options.partition}}`)) return aside(async () => ['']);
    const own = keys.map(key => (SHARED_SCRIPTS.has(name) ? `${key}:${unique}` : keyOf(key)));
    return through(name, first, async () => {
      const reply = await redis.run(name, own, args);
      options.witness?.(name, first, reply);
      if (name === 'lower') {
        const [channel, ...hints] = args as string[];
        const members = hints.filter((_, i) => i % 2 === 0);
        const soonest = Math.min(...hints.filter((_, i) => i % 2 === 1).map(Number));
        wire.publish(channel as string, [soonest, ...members].join(' '));
      }
      return reply;
    });
  }

  function runNamed(method: 'runNamed' | 'runNamedBuffers', script: NamedScript, call: NamedCall) {
    const meta = String(call.keys.meta);
    return through(script.name, meta, async () => {
      const reply = await redis[method](script, call);
      options.witness?.(script.name, meta, Array.isArray(reply) ? String(reply[0]) : reply);
      return reply;
    });
  }

  return {
    ...redis,
    run,
    runNamed: (script, call) => runNamed('runNamed', script, call),
    runNamedBuffers: (script, call) => runNamed('runNamedBuffers', script, call),
    runBuffers: (name, keys, args) => through(name, keys[0] as string, () => redis.runBuffers(name, keys, args)),
    call: (command, key, ...args) => through(command, key, () => redis.call(command, keyOf(key), ...args)),
    readHash: key => through('hgetall', key, () => redis.readHash(keyOf(key))),
    subscribe: (channels, onMessage) => {
      const mine = new Set(channels);
      const hear = options.hear ?? (deliver => deliver());
      wire.listen((channel, message) => {
        if (mine.has(channel)) hear(() => onMessage(channel, message));
      });
    },
  };
}
