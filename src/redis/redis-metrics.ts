import { Counter, createLabeledCounter, type Registry, registerGauge } from '../telemetry/metrics.ts';
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
  /** Records the duration of a command, in seconds. Not every command is timed. */
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
  const failed = createLabeledCounter(registry, {
    name: 'sluice_redis_command_errors_total',
    help: 'The number of failed Redis commands, by reason: connection (not connected or connection lost), timeout, memory (maxmemory reached), unavailable (failover or startup), replicas (not enough replicas confirmed a write), or refused (any other error).',
    label: 'reason',
    known: REDIS_FAILURES,
  });
  const durations = createPlainHistogram(registry, {
    name: 'sluice_redis_command_duration_seconds',
    help: 'The duration of Redis commands in seconds. Under load, only some of the commands are measured, because a process measures one command at a time.',
    buckets: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
  });
  return {
    failed: error => failed(classifyRedisFailure(error)),
    timed: durations.observe,
  };
}

/** The memory usage of all masters, as returned by Redis. */
export interface RedisMemory {
  readonly usedBytes: number;
  /** 0 if one of the masters does not have a limit. */
  readonly maxBytes: number;
  /** The value of the fullest master. 0 if there is no limit. */
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

/** Registers metrics that are read for each scrape. Includes the connection state, and one `INFO` for each master. */
export function registerRedisGauges(
  registry: Registry,
  redis: Pick<RedisClient, 'commandsSent' | 'isReady' | 'onReconnect' | 'callAll'>,
  redisNowMs: () => number,
): void {
  const registers = [registry];
  new Counter({
    name: 'sluice_redis_commands_total',
    help: 'The number of commands sent to Redis. Each script counts as one command.',
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
  registerGauge(registry, 'sluice_redis_connected', '1 if the connection to Redis is working, and 0 otherwise.', () =>
    redis.isReady() ? 1 : 0,
  );
  registerGauge(
    registry,
    'sluice_redis_clock_offset_seconds',
    'The difference between the clock of this machine and the Redis clock, in seconds. Negative if the clock of this machine is behind. In a Redis Cluster, the clock of the first master is used.',
    () => (Date.now() - redisNowMs()) / 1_000,
  );
  const readMemory = createSampler(() => readRedisMemory(redis));
  registerGauge(
    registry,
    'sluice_redis_memory_used_bytes',
    'The total memory used by all Redis masters, in bytes. While the process is scraped, the value is updated about every 15 s. NaN if Redis does not report its memory.',
    async () => (await readMemory())?.usedBytes,
  );
  registerGauge(
    registry,
    'sluice_redis_memory_max_bytes',
    'The total maxmemory of all Redis masters, in bytes. 0 if at least one master has no limit.',
    async () => (await readMemory())?.maxBytes,
  );
  registerGauge(
    registry,
    'sluice_redis_memory_used_ratio',
    'The proportion of maxmemory in use on the master with the highest usage, from 0 to 1. 0 if there is no limit.',
    async () => (await readMemory())?.usedRatio,
  );
}
