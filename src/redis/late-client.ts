import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_INSTANCE } from '../api/instance.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Impairment } from '../telemetry/role-health.ts';
import { checkRedis, RedisSetupError } from './check.ts';
import { connectRedis, type RedisClient } from './client.ts';
import { followRedisClock, type RedisClock } from './clock.ts';
import { checkMarker, RedisFormatError, RedisInstanceError } from './format.ts';
import type { RedisMetrics } from './redis-metrics.ts';
import { type RedisSettings, readRedisSecrets } from './redis-settings.ts';
import { isDenied, redisImpairment } from './redis-trouble.ts';
import { withoutPasswords } from './redis-url.ts';

/** A Redis that may not answer yet, or may still have settings that do not fit. */
export interface LateRedis {
  /** Rejects each command until Redis has answered once and its settings fit. */
  readonly client: RedisClient;
  /** Returns Redis's time, ms; this machine's until Redis has answered. */
  readonly nowMs: () => number;
  /** Resolves once `client` passes commands on. Does not resolve after `close`. */
  readonly opened: Promise<void>;
  /** Returns what a role says that needs Redis and waits for it. */
  readonly waiting: () => readonly Impairment[];
  /** Returns what keeps Redis from being used now. */
  readonly impairments: () => readonly Impairment[];
  readonly close: () => Promise<void>;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3_000;

/**
 * Connects to `SLUICE_REDIS_URL` and checks the settings of Redis and whose data it has; tries again until both succeed.
 */
export function openRedis(
  options: RedisSettings & {
    /** Name of this installation. Defaults to the default one. */
    readonly instance?: string;
    readonly log: Logger;
    readonly metrics?: RedisMetrics;
  },
): LateRedis {
  const { instance = DEFAULT_INSTANCE, log, metrics, ...settings } = options;
  const place = `${withoutPasswords(settings.url)} (SLUICE_REDIS_URL)`;
  const closed = new AbortController();
  const subscriptions: Parameters<RedisClient['subscribe']>[] = [];
  const reconnects: (() => void)[] = [];
  let inner: RedisClient | undefined;
  let clock: RedisClock | undefined;
  let problem: Impairment = {
    reason: 'RedisUnavailable',
    cause: 'dependency',
    message: `Redis at ${place} has not answered yet.`,
  };

  async function open(): Promise<void> {
    const client = await connectRedis(settings, log, metrics);
    try {
      await checkRedis(client, log);
      await checkMarker(client, instance);
      closed.signal.throwIfAborted();
      clock = await followRedisClock(client);
    } catch (error) {
      await client.close();
      throw error;
    }
    for (const listener of reconnects) client.onReconnect(listener);
    for (const subscription of subscriptions) client.subscribe(...subscription);
    inner = client;
  }

  function problemOf(error: Error): Impairment {
    const message = `Redis at ${place}: ${error.message}.`;
    if (error instanceof RedisSetupError) return { reason: 'RedisUnsuitable', cause: 'settings', message };
    if (error instanceof RedisFormatError) return { reason: 'NewerRedisFormat', cause: 'settings', message };
    if (error instanceof RedisInstanceError) return { reason: 'ForeignRedis', cause: 'settings', message };
    return redisImpairment(settings, place, error, readFileProblem(settings));
  }

  async function openUntilClosed(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        return await open();
      } catch (error) {
        log.debug({ err: error as Error }, 'redis cannot be used yet');
        problem = problemOf(error as Error);
      }
      // Rejects when it is closed: what waits for Redis waits on.
      await sleep(pauseMs, undefined, { signal: closed.signal });
    }
  }

  function away(): Promise<never> {
    const error = new Error(`Connection is closed: ${problem.message}`);
    metrics?.failed(error);
    return Promise.reject(error);
  }

  const opened = new Promise<void>((resolve, reject) => {
    openUntilClosed().then(resolve, error => {
      if (!closed.signal.aborted) reject(error as Error);
    });
  });
  return {
    client: {
      get cluster() {
        return inner?.cluster ?? false;
      },
      run: (...args) => inner?.run(...args) ?? away(),
      runBuffers: (...args) => inner?.runBuffers(...args) ?? away(),
      runNamed: (...args) => inner?.runNamed(...args) ?? away(),
      runNamedBuffers: (...args) => inner?.runNamedBuffers(...args) ?? away(),
      call: (...args) => inner?.call(...args) ?? away(),
      readHash: key => inner?.readHash(key) ?? away(),
      callAll: (...args) => inner?.callAll(...args) ?? away(),
      publish: (...args) => inner?.publish(...args) ?? away(),
      subscribe: (...subscription) => {
        if (inner === undefined) subscriptions.push(subscription);
        else inner.subscribe(...subscription);
      },
      isReady: () => inner?.isReady() ?? false,
      connectionError: () => inner?.connectionError(),
      onReconnect: listener => {
        if (inner === undefined) reconnects.push(listener);
        else inner.onReconnect(listener);
      },
      commandsSent: () => inner?.commandsSent() ?? 0,
      close: async () => inner?.close(),
    },
    nowMs: () => clock?.nowMs() ?? Date.now(),
    opened,
    waiting: () => [problem],
    impairments: () => {
      if (inner === undefined) return [problem];
      const error = inner.connectionError();
      // A Cluster is ready although one of its nodes denies access.
      if (inner.isReady() && !isDenied(error)) return [];
      return [redisImpairment(settings, place, error, readFileProblem(settings))];
    },
    close: async () => {
      closed.abort();
      clock?.stop();
      await inner?.close();
    },
  };
}

/** Returns why a file of the settings cannot be read now. */
function readFileProblem(settings: RedisSettings): string | undefined {
  const problems: string[] = [];
  readRedisSecrets(settings, problems);
  return problems.length === 0 ? undefined : problems.join('; ');
}
