import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
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

/** Events a second. */
const RATE = 200;
const ROLES = ['ingress', 'dispatcher', 'dispatcher'] as const;

/** The data plane: an ingress, two dispatchers, and a Redis behind a proxy; events that go through it. */
export interface World {
  readonly redis: RedisServer;
  readonly proxy: Proxy;
  readonly roles: readonly Sluice[];
  readonly state: ControlState;
  readonly reader: PartReader;
  readonly sink: Sink;
  readonly generator: Generator;
  readonly hits: readonly Hit[];
  /** Sets the clock of Redis so many seconds forward; works where `hasFaketime`. */
  readonly setRedisClock: (offsetSeconds: number) => Promise<void>;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Makes a disturbance, which is over when the promise resolves. */
  readonly hit: (fault: Pick<Hit, 'name' | 'losesResults'>, disturb: () => Promise<unknown>) => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** Starts a world in which events flow. Its Redis syncs its file with each write. `onDisk`: on a disk, not in memory. */
export async function startWorld(random: () => number, options: Pick<RedisOptions, 'onDisk'> = {}): Promise<World> {
  const folder = await temporaryFolder('chaos');
  const ends: (() => unknown)[] = [folder.remove];
  async function stop(): Promise<void> {
    for (const end of ends.splice(0).toReversed()) await end();
  }

  async function start(): Promise<World> {
    const rootKey = randomBytes(32);
    const rootKeyFile = join(folder.path, 'root.key');
    await writeFile(rootKeyFile, rootKey);
    const clock = await createRedisClock(folder.path);
    const redis = await startRedis({ ...options, env: clock.env, appendonly: true, appendfsync: 'always' });
    ends.push(redis.stop);
    const proxy = await startProxy(redis.port);
    ends.push(proxy.stop);
    const sink = await startSink(random);
    ends.push(sink.stop);
    const state = createControlState(redis.url, rootKey, sink.ports);
    await state.write(true);
    const env = { SLUICE_ROOT_KEY_FILE: rootKeyFile, SLUICE_LOG_LEVEL: 'warn' };
    const roles = await Promise.all(
      ROLES.map(async role => {
        const started = await startSluice({ kubeconfig: '/dev/null', redisUrl: proxy.url, role, env });
        ends.push(started.stop);
        return started;
      }),
    );
    const reader = startPartReader(redis.port, state);
    ends.push(reader.stop);
    const url = `${roles[0]?.ingressUrl}${state.path}`;
    const generator = startGenerator({ url, headers: state.headers }, RATE);
    ends.push(generator.stop);
    const hits: Hit[] = [];
    const hit: World['hit'] = async (fault, disturb) => {
      const fromMs = performance.now();
      await disturb();
      hits.push({ ...fault, fromMs, toMs: performance.now() });
    };
    return { redis, proxy, roles, state, reader, sink, generator, hits, setRedisClock: clock.set, random, hit, stop };
  }

  return start().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
}

/** Waits until `holds`, at most so long. Returns whether it holds. */
export async function until(withinMs: number, holds: () => boolean | Promise<boolean>): Promise<boolean> {
  const untilMs = performance.now() + withinMs;
  while (performance.now() < untilMs) {
    if (await holds()) return true;
    await delay(50);
  }
  return holds();
}
