import { Counter, Gauge, type Registry } from '../telemetry/metrics.ts';
import { createPlainHistogram } from '../telemetry/plain-histogram.ts';
import { createSampler } from '../telemetry/sampler.ts';
import type { RedisClient } from './client.ts';
import { NotReplicatedError } from './connection/replicas.ts';

/** The reason why a command has failed. Since it is used as a label, there should only be a few different values. */
export const REDIS_FAILURES = ['connection', 'timeout', 'memory', 'unavailable', 'replicas', 'refused'] as const;
export type RedisFailure = (typeof REDIS_FAILURES)[number];

/** The functions called by a client for its commands. */
export interface RedisMetrics {
  readonly failed: (error: unknown) => void;
  /** How long the command took, in seconds. Not every command is timed. */
  readonly timed: (seconds: number) => void;
}

/**
 * Redis can't process this command at the moment. For example, this happens during a failover, during startup, or on a
 * replica.
 */
const UNAVAILABLE = /^(?:READONLY|LOADING|MASTERDOWN|CLUSTERDOWN|MOVED|ASK|TRYAGAIN|BUSY|MISCONF|NOREPLICAS)\b/;

export function classifyRedisFailure(error: unknown): RedisFailure {
  if (!(error instanceof Error)) return 'connection';
  if (error.message === 'Command timed out') return 'timeout';
  if (error instanceof NotReplicatedError) return 'replicas';
  // A Cluster that is down, or a slot that is being moved, is only reported after some attempts.
  if (error.message.startsWith('Too many Cluster redirections')) return 'unavailable';
  if (error.name !== 'ReplyError') return 'connection';
  if (/\bOOM\b/.test(error.message)) return 'memory';
  return UNAVAILABLE.test(error.message) ? 'unavailable' : 'refused';
}

/** Registers the metrics used for commands. Returns the functions for the client. */
export function createRedisMetrics(registry: Registry): RedisMetrics {
  const registers = [registry];
  const errors = new Counter({
    name: 'sluice_redis_command_errors_total',
    help: 'The number of failed Redis commands, by reason: connection (not connected or connection lost), timeout, memory (maxmemory reached), unavailable (failover or startup), replicas (not enough replicas confirmed a write), or refused (any other error).',
    labelNames: ['reason'] as const,
    registers,
  });
  for (const reason of REDIS_FAILURES) errors.inc({ reason }, 0);
  const durations = createPlainHistogram({
    name: 'sluice_redis_command_duration_seconds',
    help: 'The duration of Redis commands in seconds. Under load, only some of the commands are measured, because a process measures one command at a time.',
    buckets: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  });
  return {
    failed: error => errors.inc({ reason: classifyRedisFailure(error) }),
    timed: durations.observe,
  };
}

/** The memory usage of all masters, as returned by Redis. */
export interface RedisMemory {
  readonly usedBytes: number;
  /** This is 0 if one of the masters does not have a limit. */
  readonly maxBytes: number;
  /** This is the value for the fullest master. This is 0 if there is no limit. */
  readonly usedRatio: number;
}

export async function readRedisMemory(redis: Pick<RedisClient, 'callAll'>): Promise<RedisMemory> {
  const replies = (await redis.callAll('INFO', 'memory')) as string[];
  const masters = replies.map(info => {
    const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
    return { used: field('used_memory'), max: field('maxmemory') };
  });
  const limited = masters.every(({ max }) => max > 0);
  return {
    usedBytes: masters.reduce((sum, { used }) => sum + used, 0),
    maxBytes: limited ? masters.reduce((sum, { max }) => sum + max, 0) : 0,
    usedRatio: Math.max(0, ...masters.map(({ used, max }) => (max > 0 ? used / max : 0))),
  };
}

/** Earlier scrapes reuse the last result. Slightly shorter than the common scrape interval of 15 s. */
export const SAMPLE_EVERY_MS = 14_000;
/** How long a scrape may wait for Redis. */
export const SAMPLE_PATIENCE_MS = 1_000;

/**
 * Registers metrics that are read for each scrape. This includes the connection state, and one `INFO` for each
 * master.
 */
export function registerRedisGauges(
  registry: Registry,
  redis: Pick<RedisClient, 'commandsSent' | 'isReady' | 'onReconnect' | 'callAll'>,
  redisNowMs: () => number,
): void {
  const registers = [registry];
  new Counter({
    name: 'sluice_redis_commands_total',
    help: 'The number of commands sent to Redis, where each script counts as one.',
    registers,
    collect() {
      this.reset();
      this.inc(redis.commandsSent());
    },
  });
  const reconnects = new Counter({
    name: 'sluice_redis_reconnects_total',
    help: 'The number of times that a lost connection to Redis has been established again.',
    registers,
  });
  redis.onReconnect(() => reconnects.inc());
  new Gauge({
    name: 'sluice_redis_connected',
    help: 'Whether the connection to Redis is working (1) or not (0).',
    registers,
    collect() {
      this.set(redis.isReady() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_redis_clock_offset_seconds',
    help: 'The difference between the clock of this machine and the Redis clock, in seconds. Negative if the clock of this machine is behind. In a Cluster, this is the clock of its first master.',
    registers,
    collect() {
      this.set((Date.now() - redisNowMs()) / 1_000);
    },
  });
  const memory = createSampler({
    look: () => readRedisMemory(redis),
    everyMs: SAMPLE_EVERY_MS,
    patienceMs: SAMPLE_PATIENCE_MS,
    monotonicMs: () => performance.now(),
  });
  const gauge = (name: string, help: string, of: (seen: RedisMemory) => number) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const seen = await memory.read();
        this.set(seen === undefined ? Number.NaN : of(seen));
      },
    });
  gauge(
    'sluice_redis_memory_used_bytes',
    'The total memory used by all Redis masters, in bytes. When a process is scraped, this is updated about every 15 s. If Redis does not report this value, it is NaN.',
    seen => seen.usedBytes,
  );
  gauge(
    'sluice_redis_memory_max_bytes',
    'The total memory available on all Redis masters, in bytes (maxmemory), or 0 if at least one master does not have a limit.',
    seen => seen.maxBytes,
  );
  gauge(
    'sluice_redis_memory_used_ratio',
    'The used proportion of maxmemory (0 to 1) on the master with the highest usage, or 0 if there is no limit.',
    seen => seen.usedRatio,
  );
}
