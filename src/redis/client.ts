import { createHash } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import type { Logger } from '../telemetry/log.ts';
import { findRedis } from './connection/connections.ts';
import type { RedisSettings } from './connection/redis-settings.ts';
import { isDenied } from './connection/redis-trouble.ts';
import { keySlot } from './key-slot.ts';
import { type NamedCall, type NamedScript, orderCall } from './named-scripts.ts';
import type { RedisMetrics } from './redis-metrics.ts';
import { type ScriptName, scriptSource } from './scripts.ts';

/** Reply of Redis: nested arrays of strings, numbers, null, and Buffers for the `Buffer` calls. */
export type Reply = string | number | null | Buffer | Reply[];
export type Argument = string | number | Buffer;

/** Reply of one master. `name` is its host and port in a Cluster, and '' otherwise. */
export interface MasterReply {
  readonly name: string;
  readonly reply: Reply;
}

/** A connection to one Redis, or to all masters of a Cluster; closes over reconnects. */
export interface RedisClient {
  readonly cluster: boolean;
  /**
   * Runs a script of `scripts/` by its hash. Rejects immediately if Redis is unavailable, without queueing or retrying.
   */
  readonly run: (name: ScriptName, keys: readonly string[], args: readonly Argument[]) => Promise<Reply>;
  /** The same with bulk strings as Buffers. */
  readonly runBuffers: (name: ScriptName, keys: readonly string[], args: readonly Argument[]) => Promise<Reply>;
  /** Runs a script that names its keys and arguments, as `run` does. */
  readonly runNamed: (script: NamedScript, call: NamedCall) => Promise<Reply>;
  /** The same with bulk strings as Buffers. */
  readonly runNamedBuffers: (script: NamedScript, call: NamedCall) => Promise<Reply>;
  /** One plain command whose first argument is its key. */
  readonly call: (command: string, key: string, ...args: Argument[]) => Promise<Reply>;
  /** Reads a hash with known field names. Empty if it doesn't exist. */
  readonly readHash: (key: string) => Promise<Readonly<Record<string, string>>>;
  /** A command without a key: to the server, or to every master. */
  readonly callAll: (command: string, ...args: Argument[]) => Promise<Reply[]>;
  /** The same, with the name of each master (`masterOf`). */
  readonly callMasters: (command: string, ...args: Argument[]) => Promise<readonly MasterReply[]>;
  /** Returns the name of the master that has this key, as far as is known. Always '' without a Cluster. */
  readonly masterOf: (key: string) => string;
  /** Listens on channels; `onLost` is called when messages may have been missed. */
  readonly subscribe: (
    channels: readonly string[],
    onMessage: (channel: string, message: string) => void,
    onLost: () => void,
  ) => void;
  readonly publish: (channel: string, message: string) => Promise<void>;
  /** Is a connection ready for commands? */
  readonly isReady: () => boolean;
  /** Returns why the last attempt to connect failed, unless one has succeeded since. */
  readonly connectionError: () => Error | undefined;
  /** Returns the last error of a command that the user has no right to, if it is less than a minute old. */
  readonly deniedCommand: () => Error | undefined;
  /** Called at each (re)connect, with everything that was in flight lost. */
  readonly onReconnect: (listener: () => void) => void;
  /** Commands sent so far, scripts counting as one. */
  readonly commandsSent: () => number;
  readonly close: () => Promise<void>;
}

/**
 * Connects to all masters of a Cluster. Otherwise ioredis connects to a node with the first command, and rejects further
 * commands until the connection is ready. A master that does not answer is not an error here, because the others work.
 */
async function connectNodes(cluster: Cluster): Promise<void> {
  const waiting = cluster.nodes('master').filter(node => node.status === 'wait');
  await Promise.allSettled(waiting.map(node => node.connect()));
}

/** Remembers why no connection could be made, until one is ready: to Redis, or to any node of a Cluster. */
function followConnectionErrors(redis: Redis | Cluster): () => Error | undefined {
  let last: Error | undefined;
  const failed = (error: Error) => (last = error);
  const succeeded = () => (last = undefined);
  if (redis instanceof Cluster) {
    // An error of the Cluster itself says less: all nodes failed.
    redis.on('node error', failed);
    redis.on('+node', (node: Redis) => node.on('ready', succeeded));
  } else {
    redis.on('error', failed);
    redis.on('sentinelError', failed);
    redis.on('ready', succeeded);
  }
  return () => last;
}

/** How long a denied command is remembered, in milliseconds. Roles repeat most commands within this time. */
const DENIED_FOR_MS = 60_000;

/** Remembers which command was denied last. */
function rememberDenials() {
  let last: Error | undefined;
  let sinceMs = 0;
  return {
    note: (error: Error) => {
      if (!isDenied(error)) return;
      last = error;
      sinceMs = performance.now();
    },
    last: () => (performance.now() - sinceMs < DENIED_FOR_MS ? last : undefined),
  };
}

/** Milliseconds before a client that has given up connects again. */
const REVIVE_MS = 200;

/**
 * Reconnects a client that has given up. ioredis gives up permanently if Sentinel announces a failover during the
 * lookup of the master.
 */
function revive(redis: Redis | Cluster, isClosing: () => boolean): void {
  redis.on('end', () => {
    if (isClosing()) return;
    setTimeout(() => {
      // If this fails as well, the client ends again.
      if (!isClosing()) redis.connect().catch(() => {});
    }, REVIVE_MS).unref();
  });
}

/**
 * Connects to Redis using its settings, or only its URL. Detects a Cluster using INFO, so Redis must be available (see
 * openRedis). `metrics` counts commands and their results.
 */
export async function connectRedis(
  settings: RedisSettings | string,
  log: Logger,
  metrics?: RedisMetrics,
): Promise<RedisClient> {
  const connections = await findRedis(typeof settings === 'string' ? { url: settings } : settings, log);
  const redis = connections.create();
  const connectionError = followConnectionErrors(redis);
  const reconnects: (() => void)[] = [];
  let connectedOnce = false;
  const subscribers: Redis[] = [];
  const denials = rememberDenials();
  let sent = 0;
  let closing = false;
  redis.on('error', error => log.debug({ err: error }, 'redis connection error'));
  redis.on('ready', () => {
    if (connectedOnce) for (const listener of reconnects) listener();
    connectedOnce = true;
  });
  try {
    await redis.connect();
    if (redis instanceof Cluster) await connectNodes(redis);
  } catch (error) {
    redis.disconnect();
    throw error;
  }
  revive(redis, () => closing);

  let gathering = false;
  /** Sends the commands of one turn in one write, so that Redis reads them together and syncs its file once. */
  function gather(): void {
    if (gathering || !(redis instanceof Redis) || redis.status !== 'ready') return;
    const { stream } = redis;
    gathering = true;
    stream.cork();
    process.nextTick(() => {
      gathering = false;
      stream.uncork();
    });
  }

  let timing = false;
  /**
   * Start time of the measured command. 0 if another command is currently measured. Under load, a sample is sufficient.
   */
  function begin(): number {
    if (timing || metrics === undefined) return 0;
    timing = true;
    return performance.now();
  }
  function end(beganMs: number): void {
    if (beganMs === 0) return;
    timing = false;
    metrics?.timed((performance.now() - beganMs) / 1_000);
  }
  function failed(error: unknown): void {
    denials.note(error as Error);
    metrics?.failed(error);
  }
  async function watch<T>(replying: Promise<T>, onFailure = failed): Promise<T> {
    const beganMs = begin();
    try {
      return await replying;
    } catch (error) {
      onFailure(error);
      throw error;
    } finally {
      end(beganMs);
    }
  }

  const shas = new Map<string, string>();
  async function evaluate(source: string, keys: readonly string[], args: readonly Argument[], buffers: boolean) {
    sent++;
    gather();
    let sha = shas.get(source);
    if (sha === undefined) {
      sha = createHash('sha1').update(source).digest('hex');
      shas.set(source, sha);
    }
    const rest = [keys.length, ...keys, ...args] as const;
    const beganMs = begin();
    try {
      return (await (buffers
        ? redis.callBuffer('evalsha', sha, ...rest)
        : redis.call('evalsha', sha, ...rest))) as Reply;
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) {
        const loading = buffers ? redis.callBuffer('eval', source, ...rest) : redis.call('eval', source, ...rest);
        return await watch(loading as Promise<Reply>);
      }
      failed(error);
      throw error;
    } finally {
      end(beganMs);
    }
  }

  function callMasters(command: string, ...args: Argument[]): Promise<MasterReply[]> {
    const targets = redis instanceof Cluster ? redis.nodes('master') : [redis];
    sent += targets.length;
    const ask = async (node: Redis): Promise<MasterReply> => ({
      name: redis instanceof Cluster ? `${node.options.host}:${node.options.port}` : '',
      reply: (await node.call(command, ...args)) as Reply,
    });
    // A user who may not know the settings of Redis works without them.
    return watch(Promise.all(targets.map(ask)), error => metrics?.failed(error));
  }

  return {
    cluster: connections.cluster,
    run: (name, keys, args) => evaluate(scriptSource(name), keys, args, false),
    runBuffers: (name, keys, args) => evaluate(scriptSource(name), keys, args, true),
    runNamed: (script, call) => evaluate(script.source, ...orderCall(script, call), false),
    runNamedBuffers: (script, call) => evaluate(script.source, ...orderCall(script, call), true),
    call: (command, key, ...args) => {
      sent++;
      gather();
      return watch(redis.call(command, key, ...args) as Promise<Reply>);
    },
    readHash: key => {
      sent++;
      return watch(redis.hgetall(key));
    },
    callAll: async (command, ...args) => (await callMasters(command, ...args)).map(({ reply }) => reply),
    callMasters,
    masterOf: key => (redis instanceof Cluster ? (redis.slots[keySlot(key)]?.[0] ?? '') : ''),
    subscribe: (channels, onMessage, onLost) => {
      const listening = connections.createSubscriber(redis);
      subscribers.push(listening);
      revive(listening, () => closing);
      listening.on('error', error => log.debug({ err: error }, 'redis subscriber error'));
      listening.on('message', onMessage);
      listening.on('ready', () => {
        listening.subscribe(...channels).then(
          () => onLost(),
          error => {
            denials.note(error as Error);
            log.warn({ err: error as Error }, 'redis subscribe failed');
          },
        );
      });
      listening.connect().catch(error => log.warn({ err: error as Error }, 'redis subscriber connect failed'));
    },
    publish: async (channel, message) => {
      await redis.publish(channel, message).catch((error: unknown) => {
        denials.note(error as Error);
        throw error;
      });
    },
    isReady: () => redis.status === 'ready',
    connectionError,
    deniedCommand: denials.last,
    onReconnect: listener => {
      reconnects.push(listener);
    },
    commandsSent: () => sent,
    close: async () => {
      closing = true;
      for (const subscriber of subscribers) subscriber.disconnect();
      redis.disconnect();
      await Promise.resolve();
    },
  };
}
