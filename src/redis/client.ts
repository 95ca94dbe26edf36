import { Cluster, type Redis } from 'ioredis';
import type { Logger } from '../telemetry/log.ts';
import { followConnectionErrors } from './connection/connection-errors.ts';
import { connectFirst, findRedis } from './connection/connections.ts';
import type { RedisSettings } from './connection/redis-settings.ts';
import { rememberDenials, rememberRejections, watchAsking } from './connection/refusals.ts';
import { createReplicas, type Replicas } from './connection/replicas.ts';
import { keepSubscribed, renewWith } from './connection/subscription.ts';
import { createEvaluation, masterOf, onlyReads } from './evaluation.ts';
import { type NamedCall, type NamedScript, orderCall } from './named-scripts.ts';
import type { RedisMetrics } from './redis-metrics.ts';
import { type ScriptName, scriptSource } from './scripts.ts';

/** Reply of Redis: nested arrays of strings, numbers, null, and Buffers for the `Buffer` calls. */
export type Reply = string | number | null | Buffer | Reply[];
export type Argument = string | number | Buffer;

/** A single master. In a Cluster, `name` is its host and port. Without a Cluster, it is ''. */
export interface Master {
  readonly name: string;
  /** Sends a command without a key. */
  readonly call: (command: string, ...args: Argument[]) => Promise<Reply>;
}

/**
 * A connection to a single Redis, or to all masters of a Cluster. The connection can be used again after a reconnect.
 */
export interface RedisClient {
  readonly cluster: boolean;
  /**
   * Runs a script from `scripts/` using its hash. Rejects immediately if Redis is not available. The call is not queued
   * or retried.
   */
  readonly run: (name: ScriptName, keys: readonly string[], args: readonly Argument[]) => Promise<Reply>;
  /** Same as `run`, but bulk strings are returned as Buffers. */
  readonly runBuffers: (name: ScriptName, keys: readonly string[], args: readonly Argument[]) => Promise<Reply>;
  /** Runs a script with named keys and arguments. In all other respects, same as `run`. */
  readonly runNamed: (script: NamedScript, call: NamedCall) => Promise<Reply>;
  /** Same as `runNamed`, but bulk strings are returned as Buffers. */
  readonly runNamedBuffers: (script: NamedScript, call: NamedCall) => Promise<Reply>;
  /** Sends a single command. The first argument of the command must be its key. */
  readonly call: (command: string, key: string, ...args: Argument[]) => Promise<Reply>;
  /** Reads a hash with known field names. If the hash does not exist, the result is empty. */
  readonly readHash: (key: string) => Promise<Readonly<Record<string, string>>>;
  /** Sends a command without a key to the server, or to all masters. Rejects if one of them does not reply. */
  readonly callAll: (command: string, ...args: Argument[]) => Promise<Reply[]>;
  /** Returns all masters with their names (`masterOf`), or none if Redis is unavailable. */
  readonly masters: () => readonly Master[];
  /** Returns the name of the master that has this key, if it is known. Always '' without a Cluster. */
  readonly masterOf: (key: string) => string;
  /** Subscribes to the given channels. `onLost` is called if messages may have been lost. */
  readonly subscribe: (
    channels: readonly string[],
    onMessage: (channel: string, message: string) => void,
    onLost: () => void,
  ) => void;
  readonly publish: (channel: string, message: string) => Promise<void>;
  /** Is a connection ready for commands? */
  readonly isReady: () => boolean;
  /** Returns the reason why the last connection attempt failed. Undefined if a later attempt has succeeded. */
  readonly connectionError: () => Error | undefined;
  /** Returns the last error caused by a missing permission, if it is less than a minute old. */
  readonly deniedCommand: () => Error | undefined;
  /** Returns the reason why a master does not accept writes, until it accepts one, or for a minute. */
  readonly rejectedWrite: () => Error | undefined;
  /** Returns the reason why replicas have not confirmed the last write (`SLUICE_REDIS_WAIT_REPLICAS`). */
  readonly unconfirmedWrite: () => Error | undefined;
  /** Called at each (re)connect, with everything that was in flight lost. */
  readonly onReconnect: (listener: () => void) => void;
  /** The number of commands sent so far. Each script counts as one command. */
  readonly commandsSent: () => number;
  readonly close: () => Promise<void>;
}

/** The delay before a client that has given up connects again, in milliseconds. */
const REVIVE_MS = 200;

/**
 * Reconnects a client that has given up. ioredis gives up permanently if Sentinel announces a failover during the
 * lookup of the master.
 */
function revive(redis: Redis | Cluster, isClosing: () => boolean): void {
  redis.on('end', () => {
    if (isClosing()) return;
    setTimeout(() => {
      // If this also fails, the client will end again.
      if (!isClosing()) redis.connect().catch(() => {});
    }, REVIVE_MS).unref();
  });
}

function mastersOf(redis: Redis | Cluster): Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

/** Logs a warning at startup if a master does not have enough replicas. Reads work without replicas. */
function warnWithoutReplicas(redis: Redis | Cluster, replicas: Replicas | undefined, log: Logger): void {
  for (const node of mastersOf(redis)) {
    replicas?.confirm(node).catch(error => {
      log.warn(
        { err: error as Error, node: node.options.host },
        'redis does not have enough replicas, so events are rejected',
      );
    });
  }
}

/**
 * Uses the settings (or only the URL) to connect to Redis. Detects a Cluster using INFO, so Redis must be available
 * (see openRedis). Commands and their results are counted using `metrics`.
 */
export async function connectRedis(
  settings: RedisSettings | string,
  log: Logger,
  metrics?: RedisMetrics,
): Promise<RedisClient> {
  const { waitReplicas = 0, ...access }: RedisSettings = typeof settings === 'string' ? { url: settings } : settings;
  const connections = await findRedis(access, log);
  const redis = connections.create();
  const connectionError = followConnectionErrors(redis);
  const reconnects: (() => void)[] = [];
  let connectedOnce = false;
  const subscribers: Redis[] = [];
  const denials = rememberDenials();
  const rejections = rememberRejections();
  let sent = 0;
  let closing = false;
  watchAsking(redis, denials.note);
  redis.on('error', error => log.debug({ err: error }, 'redis connection error'));
  redis.on('ready', () => {
    if (connectedOnce) for (const listener of reconnects) listener();
    connectedOnce = true;
  });
  const replicas =
    waitReplicas > 0
      ? createReplicas({ replicas: waitReplicas, cluster: connections.cluster, connect: connections.createOnce })
      : undefined;
  try {
    await connectFirst(redis);
    warnWithoutReplicas(redis, replicas, log);
  } catch (error) {
    redis.disconnect();
    throw error;
  }
  revive(redis, () => closing);

  let gathering = false;
  /** Sends all commands of a turn to a node in a single write, so that Redis only syncs its file once. */
  function gather(): void {
    if (gathering) return;
    gathering = true;
    const streams = mastersOf(redis)
      .filter(({ status }) => status === 'ready')
      .map(({ stream }) => stream);
    for (const stream of streams) stream.cork();
    process.nextTick(() => {
      gathering = false;
      for (const stream of streams) stream.uncork();
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

  const runScript = createEvaluation({ redis, replicas });
  function evaluate(source: string, keys: readonly string[], args: readonly Argument[], buffers: boolean) {
    sent++;
    gather();
    const [key = ''] = keys;
    const replying = watch(runScript({ source, keys, args, buffers }), error => {
      failed(error);
      rejections.note(masterOf(redis, key), error as Error);
    });
    if (rejections.isRejecting() && !onlyReads(source)) {
      replying.then(
        () => rejections.accepted(masterOf(redis, key)),
        () => {},
      );
    }
    return replying;
  }

  function masters(): Master[] {
    return mastersOf(redis).map(node => ({
      name: redis instanceof Cluster ? `${node.options.host}:${node.options.port}` : '',
      call: (command, ...args) => {
        sent++;
        // The Redis settings are ignored if the user is not allowed to read them.
        return watch(node.call(command, ...args) as Promise<Reply>, error => metrics?.failed(error));
      },
    }));
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
    callAll: (...command) => Promise.all(masters().map(({ call }) => call(...command))),
    masters,
    masterOf: key => masterOf(redis, key),
    subscribe: (channels, onMessage, onLost) => {
      const listening = connections.createSubscriber(redis);
      subscribers.push(listening);
      revive(listening, () => closing);
      listening.on('error', error => log.debug({ err: error }, 'redis subscriber error'));
      listening.on('message', onMessage);
      let logged: string | undefined;
      keepSubscribed(listening, channels, {
        listening: onLost,
        failure: error => {
          denials.note(error);
          if (error.message !== logged) log.warn({ err: error }, 'redis subscribe failed');
          logged = error.message;
        },
      });
      renewWith(redis, listening);
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
    rejectedWrite: rejections.last,
    unconfirmedWrite: () => replicas?.problem(),
    onReconnect: listener => {
      reconnects.push(listener);
    },
    commandsSent: () => sent,
    close: async () => {
      closing = true;
      for (const subscriber of subscribers) subscriber.disconnect();
      replicas?.close();
      redis.disconnect();
      await Promise.resolve();
    },
  };
}
