import type { ControlStore } from '../redis/control-store.ts';
import type { Logger } from '../telemetry/log.ts';

/** A second look decides: one that finds nothing may have met a Redis that is just starting. */
const SECOND_LOOK_MS = 2_000;
const LOOK_EVERY_MS = 1_000;

export interface LossWatchDeps {
  readonly readCluster: ControlStore['readCluster'];
  /** From now on nothing is written, and the objects say why. */
  readonly onLost: () => void;
  /** Everything is to be rebuilt; resolves when it was begun. */
  readonly onRebuild: () => Promise<void>;
  readonly sleep: (ms: number) => Promise<void>;
  readonly stopped: () => boolean;
  readonly log: Logger;
}

/** Notices that Redis lost its control state (a flush, an empty disk), also while no event comes and asks for it. */
export async function watchForLoss(deps: LossWatchDeps): Promise<void> {
  async function isLost(): Promise<boolean> {
    try {
      return !(await deps.readCluster()).ready;
    } catch (error) {
      deps.log.debug({ err: error }, 'redis cannot be asked');
      return false;
    }
  }
  while (!deps.stopped()) {
    await deps.sleep(LOOK_EVERY_MS);
    if (deps.stopped() || !(await isLost())) continue;
    deps.log.warn('redis has lost its control state');
    deps.onLost();
    await deps.sleep(SECOND_LOOK_MS);
    if (deps.stopped()) return;
    try {
      await deps.onRebuild();
    } catch (error) {
      deps.log.error({ err: error }, 'rebuilding redis failed, tried again');
    }
  }
}
