import type { ControlStore } from '../redis/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import { type Clock, sleep } from '../time/clock.ts';

/** Pause between the loss and the rebuild, ms: Redis may still be starting. */
const REBUILD_AFTER_MS = 2_000;
const CHECK_EVERY_MS = 1_000;

export interface LossWatchDeps {
  readonly readCluster: ControlStore['readCluster'];
  /** Called at the loss: stop writing, and report the loss on the objects. */
  readonly onLost: () => void;
  /** Starts to rebuild everything; resolves when it has started. */
  readonly onRebuild: () => Promise<void>;
  readonly clock: Pick<Clock, 'setTimer'>;
  /** Ends the watch: nothing is called after it aborts. */
  readonly over: AbortSignal;
  readonly log: Logger;
}

/** Detects that Redis has lost its control state (a flush, an empty disk), even without events. */
export async function watchForLoss({ clock, over, log, ...deps }: LossWatchDeps): Promise<void> {
  async function isLost(): Promise<boolean> {
    try {
      return !(await deps.readCluster()).ready;
    } catch (error) {
      log.debug({ err: error }, 'redis cannot be read');
      return false;
    }
  }
  while (!over.aborted) {
    await sleep(clock, CHECK_EVERY_MS, over);
    if (over.aborted) return;
    const lost = await isLost();
    if (over.aborted) return;
    if (!lost) continue;
    log.warn('redis has lost its control state');
    deps.onLost();
    await sleep(clock, REBUILD_AFTER_MS, over);
    if (over.aborted) return;
    try {
      await deps.onRebuild();
    } catch (error) {
      if (over.aborted) return;
      log.error({ err: error }, 'rebuilding redis failed, retrying');
    }
  }
}
