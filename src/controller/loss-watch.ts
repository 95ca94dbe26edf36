import type { ControlStore } from '../record/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import { type Clock, sleep } from '../time/clock.ts';

/** The delay between the loss and the rebuild, in milliseconds. Required because Redis may still be starting. */
const REBUILD_AFTER_MS = 2_000;
const CHECK_EVERY_MS = 1_000;

export interface LossWatchDeps {
  readonly readCluster: ControlStore['readCluster'];
  /** Called when the control state is lost. Should stop all writes and report the loss on the objects. */
  readonly onLost: () => void;
  /** Starts rebuilding the control state. The promise resolves when the rebuild has been started. */
  readonly onRebuild: () => Promise<void>;
  readonly clock: Pick<Clock, 'setTimer'>;
  /** Stops the watch when aborted, after which no callbacks will be called. */
  readonly over: AbortSignal;
  readonly log: Logger;
}

/**
 * Detects a loss of control state in Redis. For example, this happens if Redis was flushed, or if its disk is empty.
 * Also works if there are no events.
 */
export async function watchForLoss({ clock, over, log, ...deps }: LossWatchDeps): Promise<void> {
  async function isLost(): Promise<boolean> {
    try {
      return !(await deps.readCluster()).ready;
    } catch (error) {
      log.debug({ err: error }, 'failed to read Redis');
      return false;
    }
  }
  /** True if the control state has been lost since the last rebuild. Redis may already contain it again. */
  let isDue = false;
  while (!over.aborted) {
    await sleep(clock, CHECK_EVERY_MS, over);
    if (over.aborted) return;
    const lost = await isLost();
    if (over.aborted) return;
    if (!lost && !isDue) continue;
    isDue = true;
    if (lost) {
      log.warn('Redis has lost its control state, which will be rebuilt from the objects');
      deps.onLost();
    }
    await sleep(clock, REBUILD_AFTER_MS, over);
    if (over.aborted) return;
    try {
      await deps.onRebuild();
      isDue = false;
    } catch (error) {
      if (over.aborted) return;
      log.error({ err: error }, 'failed to rebuild the control state in Redis, retrying');
    }
  }
}
