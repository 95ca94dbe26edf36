import type { Clock } from './clock.ts';
import { DeadlineError, withDeadline } from './deadline.ts';
import { createExpiringMap } from './expiring-map.ts';
import { createOccupancy } from './occupancy.ts';
import { createSingleFlight } from './single-flight.ts';

/** The time for which a group is considered silent, which is renewed by each call that does not end in time. */
export const SILENT_MS = 60_000;

/**
 * BoundedReads reads values from a store that may not respond. No caller waits longer than the timeout, even if it
 * waits for the read of another caller first.
 */
export interface BoundedReads<T> {
  /**
   * Returns a value that is not older than the call. Calls with the same name share a read. If a read of the group does
   * not end in time, the group is silent. Only one read at a time is then made to find out whether it responds again.
   * The result of all others is 'silent'.
   *
   * @param group the values that are stored in the same place
   * @throws DeadlineError if the read of this call does not end in time, or the error of the read
   */
  readonly read: (name: string, group: string, run: Run<T>) => Promise<T | 'silent'>;
}

/** The signal is aborted if the read does not end in time. */
type Run<T> = (signal: AbortSignal) => Promise<T>;

export function createBoundedReads<T>(options: {
  readonly timeoutMs: number;
  /** The number of silent groups that are remembered. */
  readonly entries: number;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
}): BoundedReads<T> {
  const { timeoutMs, entries, clock } = options;
  const { nowMs } = clock;
  const readFresh = createSingleFlight<T | 'silent'>();
  const silent = createExpiringMap<true>({ ttlMs: SILENT_MS, entries, nowMs });
  /** The reads in progress, by group. */
  const running = createOccupancy();

  async function readInTime(group: string, run: Run<T>): Promise<T> {
    const beganMs = nowMs();
    running.enter(group);
    try {
      const value = await withDeadline(timeoutMs, run, clock);
      silent.delete(group);
      return value;
    } catch (error) {
      // The client of the store also has a time limit, which can be reached first.
      if (error instanceof DeadlineError || nowMs() - beganMs >= timeoutMs / 2) silent.set(group, true);
      else silent.delete(group);
      throw error;
    } finally {
      running.leave(group);
    }
  }

  return {
    async read(name, group, run) {
      const isProbe = !running.isUsed(group);
      const isRefused = () => !isProbe && silent.get(group) === true;
      if (isRefused()) return 'silent';
      // The group may become silent while this call waits for an earlier read.
      return readFresh(name, async () => (isRefused() ? 'silent' : readInTime(group, run)));
    },
  };
}
