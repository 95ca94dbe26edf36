import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_INSTANCE } from '../api/instance.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Impairment } from '../telemetry/role-health.ts';
import { checkRedis, RedisSetupError } from './check.ts';
import { connectRedis, type RedisClient } from './client.ts';
import { followRedisClock, type RedisClock } from './clock.ts';
import { type RedisSettings, readRedisSecrets } from './connection/redis-settings.ts';
import { isDenied, placeOf, redisImpairment, writesRejected } from './connection/redis-trouble.ts';
import { parseRedisUrl } from './connection/redis-url.ts';
import { checkMarker, RedisFormatError, RedisInstanceError } from './format.ts';
import type { KeysVersion } from './keys-version.ts';
import { CHECK_EVERY_MS, type MarkerWatch, watchMarker } from './marker-watch.ts';
import type { RedisMetrics } from './redis-metrics.ts';
import { CHECK_SETTINGS_EVERY_MS, type SettingsWatch, watchSettings } from './settings-watch.ts';

/** A Redis which might not have responded yet, or might still use invalid settings. */
export interface LateRedis {
  /**
   * Rejects all commands until Redis has responded for the first time, its settings are valid, and its data belongs to
   * this installation and uses a supported format. Rejects commands again whenever this is not the case for the data. A
   * reconnect is only announced after we have checked the data.
   */
  readonly client: RedisClient;
  /** Returns the Redis time in milliseconds. Until Redis has responded, this is the time of this machine. */
  readonly nowMs: () => number;
  /** Resolves when `client` will send commands to Redis. Never resolves if it has been closed. */
  readonly opened: Promise<void>;
  /** Returns the message for a role waiting for Redis. */
  readonly waiting: () => readonly Impairment[];
  /** Returns the reasons why Redis currently can't be used. */
  readonly impairments: () => readonly Impairment[];
  /**
   * Returns the version of the ingress keys when the data was last checked. Undefined if this is not known, and in a
   * Redis Cluster, where it can't be written together with the keys.
   */
  readonly keysVersion: () => KeysVersion | undefined;
  readonly close: () => Promise<void>;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3_000;

/**
 * Connects to `SLUICE_REDIS_URL` and checks the Redis settings and the owner of its data. Repeated until both have
 * succeeded.
 */
export function openRedis(
  options: RedisSettings & {
    /** The name of this installation. Defaults to the one without a name. */
    readonly instance?: string;
    readonly log: Logger;
    readonly metrics?: RedisMetrics;
    /** The interval for checking the data while Redis is connected. */
    readonly checkEveryMs?: number;
    /** The interval for checking the Redis settings. */
    readonly checkSettingsEveryMs?: number;
  },
): LateRedis {
  const { instance = DEFAULT_INSTANCE, log, metrics, checkEveryMs = CHECK_EVERY_MS, ...rest } = options;
  const { checkSettingsEveryMs = CHECK_SETTINGS_EVERY_MS, ...settings } = rest;
  const place = placeOf(settings);
  const closed = new AbortController();
  const subscriptions: Parameters<RedisClient['subscribe']>[] = [];
  const reconnects: (() => void)[] = [];
  let inner: RedisClient | undefined;
  let clock: RedisClock | undefined;
  let marker: MarkerWatch | undefined;
  let suitability: SettingsWatch | undefined;
  let problem: Impairment = {
    reason: 'RedisUnavailable',
    cause: 'dependency',
    message: `Redis at ${place} has not responded yet.`,
  };

  async function open(): Promise<void> {
    const client = await connectRedis(settings, log, metrics);
    let checkAgain: () => void;
    try {
      checkAgain = await checkRedis(client, log);
      await checkMarker(client, instance);
      closed.signal.throwIfAborted();
      clock = await followRedisClock(client, log);
      warnAboutUnused(settings.url, client, log);
    } catch (error) {
      const cause = client.connectionError();
      await client.close();
      // The reason is only known to the connection.
      throw cause !== undefined && (error as Error).message === 'Connection is closed.' ? cause : error;
    }
    const onUsable = () => {
      for (const listener of reconnects) listener();
    };
    suitability = watchSettings(client, checkSettingsEveryMs, checkAgain);
    marker = watchMarker(client, { instance, checkEveryMs, onUsable });
    for (const subscription of subscriptions) client.subscribe(...subscription);
    inner = client;
  }

  function problemOf(error: Error): Impairment {
    const message = `Redis at ${place}: ${error.message}.`;
    if (error instanceof RedisSetupError) return { reason: 'RedisUnsuitable', cause: 'settings', message };
    if (error instanceof RedisFormatError) return { reason: 'UnsupportedRedisFormat', cause: 'settings', message };
    if (error instanceof RedisInstanceError) return { reason: 'ForeignRedis', cause: 'settings', message };
    return redisImpairment(settings, place, error, readFileProblem(settings));
  }

  async function openUntilClosed(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        return await open();
      } catch (error) {
        log.debug({ err: error as Error }, 'Redis is not available yet');
        problem = problemOf(error as Error);
      }
      // `sleep` rejects when the client is closed. Anything that waits for Redis keeps waiting.
      await sleep(pauseMs, undefined, { signal: closed.signal });
    }
  }

  /** Returns the client if its data may be used. */
  const usable = () => (marker?.isUsable() === true ? inner : undefined);

  /** Returns the reason why Redis, or a Redis that has responded, is not being used. */
  function whyUnused(): Impairment {
    if (inner === undefined) return problem;
    const error = marker?.refusal() ?? marker?.failure();
    if (error !== undefined) return problemOf(error);
    const message = `Redis at ${place} has responded, but its data has not been checked or used yet.`;
    return { reason: 'RedisUnavailable', cause: 'dependency', message };
  }

  function away(): Promise<never> {
    const error = new Error(`Connection is closed: ${whyUnused().message}`);
    metrics?.failed(error);
    return Promise.reject(error);
  }

  function impairments(): readonly Impairment[] {
    if (inner === undefined || (inner.isReady() && usable() === undefined)) return [whyUnused()];
    const connectionError = inner.connectionError();
    // A Cluster is ready even if one of its nodes denies access. A user may lack the rights for some commands only.
    const error = isDenied(connectionError) ? connectionError : (inner.deniedCommand() ?? connectionError);
    const silence = marker?.silence();
    if (silence === undefined && !isDenied(error) && (inner.isReady() || error === undefined)) {
      const unsuitable = suitability?.problem();
      const rejection = inner.rejectedWrite();
      // The role keeps working, so it stays ready.
      if (unsuitable !== undefined) return [{ ...problemOf(unsuitable), cause: 'dependency' }];
      if (rejection !== undefined) return [writesRejected(place, rejection)];
      if (inner.isReady()) return notReplicated(place, inner.unconfirmedWrite());
    }
    return [redisImpairment(settings, place, error ?? silence, readFileProblem(settings))];
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
      run: (...args) => usable()?.run(...args) ?? away(),
      runBuffers: (...args) => usable()?.runBuffers(...args) ?? away(),
      runNamed: (...args) => usable()?.runNamed(...args) ?? away(),
      runNamedBuffers: (...args) => usable()?.runNamedBuffers(...args) ?? away(),
      call: (...args) => usable()?.call(...args) ?? away(),
      readHash: key => usable()?.readHash(key) ?? away(),
      callAll: (...args) => usable()?.callAll(...args) ?? away(),
      masters: () => usable()?.masters() ?? [],
      masterOf: key => inner?.masterOf(key) ?? '',
      publish: (...args) => usable()?.publish(...args) ?? away(),
      subscribe: (...subscription) => {
        if (inner === undefined) subscriptions.push(subscription);
        else inner.subscribe(...subscription);
      },
      isReady: () => usable()?.isReady() ?? false,
      connectionError: () => inner?.connectionError(),
      deniedCommand: () => inner?.deniedCommand(),
      rejectedWrite: () => inner?.rejectedWrite(),
      unconfirmedWrite: () => inner?.unconfirmedWrite(),
      onReconnect: listener => {
        reconnects.push(listener);
      },
      commandsSent: () => inner?.commandsSent() ?? 0,
      close: async () => inner?.close(),
    },
    nowMs: () => clock?.nowMs() ?? Date.now(),
    opened,
    waiting: () => {
      const current = impairments();
      return current.length > 0 ? current : [whyUnused()];
    },
    impairments,
    keysVersion: () => (inner?.cluster === false ? marker?.keysVersion() : undefined),
    close: async () => {
      closed.abort();
      clock?.stop();
      marker?.stop();
      suitability?.stop();
      await inner?.close();
    },
  };
}

/** Several addresses of servers that are not a Cluster look like a failover. */
function warnAboutUnused(url: string, { cluster }: RedisClient, log: Logger): void {
  const { nodes, sentinel } = parseRedisUrl(url);
  if (cluster || sentinel !== undefined || nodes.length === 1) return;
  log.warn(
    'redis is not a Cluster, so only the first address in SLUICE_REDIS_URL is used: use Sentinel, or remove the others',
  );
}

/** Describes why writes are not confirmed by replicas. */
function notReplicated(place: string, error: Error | undefined): Impairment[] {
  if (error === undefined) return [];
  const message = `Redis at ${place} does not replicate in time: ${error.message}. Repair or add replicas.`;
  return [{ reason: 'RedisNotReplicated', cause: 'dependency', message }];
}

/** Returns the reason why a file in the settings currently can't be read. */
function readFileProblem(settings: RedisSettings): string | undefined {
  const problems: string[] = [];
  readRedisSecrets(settings, problems);
  return problems.length === 0 ? undefined : problems.join('; ');
}
