import type { Logger } from '../telemetry/log.ts';
import type { RedisClient } from './client.ts';

/**
 * The number of milliseconds of the Redis clock. All scripts use it as `nowMs` because the clocks of different machines
 * may not be synchronized.
 */
export interface RedisClock {
  readonly nowMs: () => number;
  readonly stop: () => void;
}

/** If a correction is larger than this, the time can also move backward: Redis's own clock was set back. */
const LARGEST_PAUSE_MS = 2_000;

/** A larger offset is logged, once a minute. Receivers usually accept timestamps within five minutes. */
const LARGEST_OFFSET_MS = 60_000;
const LOG_EVERY_MS = 60_000;

/**
 * Reads the Redis clock every `intervalMs` using TIME (in a Cluster, this is the clock of its first master). Keeps the
 * offset of the sample with the shortest round trip. In between, it uses the monotonic clock, so changing the clock of
 * this machine has no effect. After a small correction, the time stands still instead of moving backward.
 *
 * The timestamps of signatures and the expiry of access tokens depend on the clock of this machine, so a large
 * difference between the two clocks is logged.
 */
export async function followRedisClock(
  redis: RedisClient,
  log: Pick<Logger, 'warn'>,
  intervalMs = 10_000,
): Promise<RedisClock> {
  let offset = 0;
  let last = 0;
  let loggedMs = Number.NEGATIVE_INFINITY;
  async function sample(): Promise<void> {
    const before = performance.now();
    const [time] = (await redis.callAll('TIME')) as [[string, string]];
    const after = performance.now();
    const theirs = Number(time[0]) * 1_000 + Number(time[1]) / 1_000;
    const measured = theirs - (before + after) / 2;
    // The error of a sample is half of its round trip, so slow samples are not useful.
    if (Math.abs(measured - offset) > (after - before) / 2) offset = measured;
    const aheadMs = Date.now() - (after + offset);
    if (Math.abs(aheadMs) <= LARGEST_OFFSET_MS || after - loggedMs < LOG_EVERY_MS) return;
    loggedMs = after;
    log.warn({ aheadSeconds: Math.round(aheadMs / 1_000) }, 'the clock of this machine differs from the Redis clock');
  }
  await sample();
  const timer = setInterval(() => {
    sample().catch(() => {});
  }, intervalMs);
  timer.unref();
  return {
    nowMs: () => {
      const now = Math.round(performance.now() + offset);
      if (now > last || last - now > LARGEST_PAUSE_MS) last = now;
      return last;
    },
    stop: () => clearInterval(timer),
  };
}
