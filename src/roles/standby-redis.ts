import type { Impairment, ImpairmentCheck } from '../telemetry/role-health.ts';
import { type Clock, sleep } from '../time/clock.ts';

const LOOK_EVERY_MS = 5_000;
/** After Redis has lost its data, the leader and the standby see its new id at different times. */
const DIFFERS_FOR_MS = 30_000;

/**
 * Compares the Redis of a standby controller with the leader's Redis, until `stop` is aborted. If two
 * installations were installed in the same namespace, their controllers use the same Lease, but may use different Redis
 * servers.
 *
 * The controller only reports this. When the Redis is replaced, the new replicas have to become ready and take over.
 */
export function watchStandbyRedis(options: {
  readonly readStore: () => Promise<string | undefined>;
  /** Returns the id of the leader's Redis, if another replica leads. */
  readonly leadersStore: () => string | undefined;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  readonly stop: AbortSignal;
}): ImpairmentCheck {
  const { readStore, leadersStore, clock, stop } = options;
  let sinceMs: number | undefined;

  async function look(): Promise<void> {
    if (leadersStore() === undefined) {
      sinceMs = undefined;
      return;
    }
    const own = await readStore();
    const theirs = leadersStore();
    sinceMs = theirs === undefined || theirs === own ? undefined : (sinceMs ?? clock.nowMs());
  }

  async function run(): Promise<void> {
    while (!stop.aborted) {
      // Without a response from Redis, the last result remains.
      await look().catch(() => {});
      await sleep(clock, LOOK_EVERY_MS, stop);
    }
  }
  void run();

  return () => {
    if (sinceMs === undefined || clock.nowMs() - sinceMs < DIFFERS_FOR_MS || leadersStore() === undefined) return [];
    return [OTHER_REDIS];
  };
}

const OTHER_REDIS: Impairment = {
  reason: 'ForeignRedis',
  cause: 'dependency',
  message:
    'Another replica leads, and it uses another Redis than this one (SLUICE_REDIS_URL). If both belong to the same installation, set the same SLUICE_REDIS_URL for all pods. Otherwise, install one of the two installations in another namespace, with another SLUICE_INSTANCE.',
};
