import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../telemetry/log.ts';
import type { Impairment } from '../telemetry/role-health.ts';
import { checkRedis, RedisSetupError } from './check.ts';
import { connectRedis, type RedisClient } from './client.ts';
import { followRedisClock, type RedisClock } from './clock.ts';
import { checkFormat, RedisFormatError } from './format.ts';
import type { RedisMetrics } from './redis-metrics.ts';

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

/** Returns the addresses of `SLUICE_REDIS_URL` without passwords. */
export function withoutPasswords(url: string): string {
  return url
    .split(',')
    .map(each => {
      const at = URL.parse(each.trim());
      if (at === null) return '';
      return `${at.protocol}//${at.username === '' ? '' : `${at.username}@`}${at.host}`;
    })
    .join(',');
}

/** Connects to `SLUICE_REDIS_URL` and checks the settings of Redis; tries again until both succeed. */
export function openRedis(options: {
  readonly url: string;
  readonly log: Logger;
  readonly metrics?: RedisMetrics;
}): LateRedis {
  const { url, log, metrics } = options;
  const place = `${withoutPasswords(url)} (SLUICE_REDIS_URL)`;
  const closed = new AbortController();
  const subscriptions: Parameters<RedisClient['subscribe']>[] = [];
  const reconnects: (() => void)[] = [];
  let inner: RedisClient | undefined;
  let clock: RedisClock | undefined;
  let problem = unavailable(`Redis at ${place} has not answered yet.`);

  async function open(): Promise<void> {
    const client = await connectRedis(url, log, metrics);
    try {
      await checkRedis(client, log);
      await checkFormat(client);
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

  async function openUntilClosed(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        return await open();
      } catch (error) {
        log.debug({ err: error as Error }, 'redis cannot be used yet');
        problem = problemOf(error as Error, place);
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
      call: (...args) => inner?.call(...args) ?? away(),
      readHash: key => inner?.readHash(key) ?? away(),
      callAll: (...args) => inner?.callAll(...args) ?? away(),
      publish: (...args) => inner?.publish(...args) ?? away(),
      subscribe: (...subscription) => {
        if (inner === undefined) subscriptions.push(subscription);
        else inner.subscribe(...subscription);
      },
      isReady: () => inner?.isReady() ?? false,
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
      return inner.isReady() ? [] : [unavailable(`Redis at ${place} does not answer any more.`)];
    },
    close: async () => {
      closed.abort();
      clock?.stop();
      await inner?.close();
    },
  };
}

function problemOf(error: Error, place: string): Impairment {
  const message = `Redis at ${place}: ${error.message}.`;
  if (error instanceof RedisSetupError) return { reason: 'RedisUnsuitable', cause: 'settings', message };
  if (error instanceof RedisFormatError) return { reason: 'NewerRedisFormat', cause: 'settings', message };
  return unavailable(`Redis at ${place} does not answer: ${error.message}`);
}

function unavailable(message: string): Impairment {
  return { reason: 'RedisUnavailable', cause: 'dependency', message };
}
