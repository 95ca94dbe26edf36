import { randomUUID } from 'node:crypto';
import type { Replays } from '../../accounts/replays.ts';
import type { HintIndex } from '../../hints/hints.ts';
import type { Logger } from '../../telemetry/log.ts';
import { createDueLoop, type DueLoop } from '../due-loop.ts';

export interface ReplaySweepOptions {
  readonly replays: Pick<Replays, 'sweep'>;
  /** The hints for accounts that have replays which were charged but have not been completed. */
  readonly hints: HintIndex;
  readonly nowMs: () => number;
  readonly log: Logger;
}

const LEASE_MS = 30_000;
/** There are usually only a few replays. If there are none, a sweep only needs 16 reads during this time. */
const SWEEP_MS = 30_000;

/** Creates a loop that completes or refunds a replay if its process has crashed after charging the account. */
export function createReplaySweep({ replays, hints, nowMs, log }: ReplaySweepOptions): DueLoop {
  return createDueLoop({
    hints,
    nowMs,
    log,
    concurrency: 4,
    leaseMs: LEASE_MS,
    sweepMs: SWEEP_MS,
    token: randomUUID,
    run: account => replays.sweep(account),
  });
}
