import type { RedisClient } from './client.ts';

/** Milliseconds of Redis's clock, for `nowMs` of every script: the roles' machines may disagree, Redis is one. */
export interface RedisClock {
  readonly nowMs: () => number;
  readonly stop: () => void;
}

/** A correction of more than this is followed backward, too: Redis's own clock was set back. */
const LARGEST_PAUSE_MS = 2_000;

/**
 * Follows TIME of Redis (in a Cluster: of its first master) every `intervalMs`, keeping the offset of the sample with
 * the shortest round trip. In between time passes as the monotonic clock says: this machine's may be set as it likes.
 * After a small correction it stands still until it is true again, and does not go backward.
 */
export async function followRedisClock(redis: RedisClient, intervalMs = 10_000): Promise<RedisClock> {
  let offset = 0;
  let last = 0;
  async function sample(): Promise<void> {
    const before = performance.now();
    const [time] = (await redis.callAll('TIME')) as [[string, string]];
    const after = performance.now();
    const theirs = Number(time[0]) * 1_000 + Number(time[1]) / 1_000;
    const measured = theirs - (before + after) / 2;
    // Half the round trip is the error of a sample: a slow one says nothing.
    if (Math.abs(measured - offset) > (after - before) / 2) offset = measured;
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
