import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Cluster, Redis } from 'ioredis';
import { type RedisOptions, type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Sluice, startSluice } from '../support/sluice.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type ControlState, createControlState } from './control-state.ts';
import { type Generator, startGenerator } from './generator.ts';
import { type PartReader, startPartReader } from './part-reader.ts';
import { type Proxy, startProxy } from './proxy.ts';
import type { Hit } from './record.ts';
import { createRedisClock } from './redis-clock.ts';
import { type Sink, startSink } from './sink.ts';

/** The number of events per second. */
const RATE = 200;
/** The client options of the test, which continues after a lost connection. */
export const READER = { retryStrategy: () => 50, maxRetriesPerRequest: 0 } as const;
const ROLES = ['ingress', 'dispatcher', 'dispatcher'] as const;

/** The data plane (an ingress and two dispatchers) and its events. */
export interface Flow {
  readonly roles: readonly Sluice[];
  readonly state: ControlState;
  readonly reader: PartReader;
  readonly sink: Sink;
  readonly generator: Generator;
  readonly hits: readonly Hit[];
  /** A number from 0 to 1. */
  readonly random: () => number;
  /** Injects a fault, which is over when the promise resolves. */
  readonly hit: (fault: Pick<Hit, 'name' | 'losesResults'>, disturb: () => Promise<unknown>) => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** A data plane with a Redis behind a proxy. */
export interface World extends Flow {
  readonly redis: RedisServer;
  readonly proxy: Proxy;
  /** Changes the Redis clock by this number of seconds. Only available with `hasFaketime`. */
  readonly setRedisClock: (offsetSeconds: number) => Promise<void>;
}

/** A running Redis. */
export interface Backend {
  /** The URL for the test. */
  readonly url: string;
  /** The URL for the roles. */
  readonly rolesUrl: string;
  readonly connectReader: () => Redis | Cluster;
  /** Additional variables of the roles. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Resources to release, starting with the last one. */
export type Ends = (() => unknown)[];

export async function endAll(ends: Ends): Promise<void> {
  for (const end of ends.splice(0).toReversed()) await end();
}

/** Calls `start` and releases all started resources if it fails. */
export async function startOrEnd<T>(start: (ends: Ends) => Promise<T>): Promise<T> {
  const ends: Ends = [];
  try {
    return await start(ends);
  } catch (error) {
    await endAll(ends);
    throw error;
  }
}

/** Starts the roles and sends events. */
export async function startFlow(backend: Backend, random: () => number, ends: Ends): Promise<Flow> {
  const folder = await temporaryFolder('chaos');
  ends.push(folder.remove);
  const rootKey = randomBytes(32);
  const rootKeyFile = join(folder.path, 'root.key');
  await writeFile(rootKeyFile, rootKey);
  const sink = await startSink(random);
  ends.push(sink.stop);
  const state = createControlState(backend.url, rootKey, sink.ports);
  await state.write(true);
  const env = { SLUICE_ROOT_KEY_FILE: rootKeyFile, SLUICE_LOG_LEVEL: 'warn', ...backend.env };
  const roles = await Promise.all(
    ROLES.map(async role => {
      const started = await startSluice({ kubeconfig: '/dev/null', redisUrl: backend.rolesUrl, role, env });
      ends.push(started.stop);
      return started;
    }),
  );
  const reader = startPartReader(backend.connectReader(), state);
  ends.push(reader.stop);
  const url = `${roles[0]?.ingressUrl}${state.path}`;
  const generator = startGenerator({ url, headers: state.headers }, RATE);
  ends.push(generator.stop);
  const hits: Hit[] = [];
  const hit: Flow['hit'] = async (fault, disturb) => {
    const fromMs = performance.now();
    await disturb();
    hits.push({ ...fault, fromMs, toMs: performance.now() });
  };
  return { roles, state, reader, sink, generator, hits, random, hit, stop: () => endAll(ends) };
}

/**
 * Starts a world in which events are delivered. Its Redis uses fsync for each write. With `onDisk`, its file is on a
 * disk instead of in memory.
 */
export function startWorld(random: () => number, options: Pick<RedisOptions, 'onDisk'> = {}): Promise<World> {
  return startOrEnd(async ends => {
    const folder = await temporaryFolder('chaos-clock');
    ends.push(folder.remove);
    const clock = await createRedisClock(folder.path);
    const redis = await startRedis({ ...options, env: clock.env, appendonly: true, appendfsync: 'always' });
    ends.push(redis.stop);
    const proxy = await startProxy(redis.port);
    ends.push(proxy.stop);
    const connectReader = () => new Redis(redis.port, '127.0.0.1', READER);
    const flow = await startFlow({ url: redis.url, rolesUrl: proxy.url, connectReader }, random, ends);
    return { ...flow, redis, proxy, setRedisClock: clock.set };
  });
}

/** Waits until `holds` returns true, but no longer than the given time. Returns whether it holds. */
export async function until(withinMs: number, holds: () => boolean | Promise<boolean>): Promise<boolean> {
  const untilMs = performance.now() + withinMs;
  while (performance.now() < untilMs) {
    if (await holds()) return true;
    await delay(50);
  }
  return holds();
}
