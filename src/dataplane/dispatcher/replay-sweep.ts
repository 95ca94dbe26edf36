import { randomUUID } from 'node:crypto';
import type { Replays } from '../../accounts/replays.ts';
import type { HintIndex } from '../../hints/hints.ts';
import type { Logger } from '../../telemetry/log.ts';
import { createDueLoop, type DueLoop } from '../due-loop.ts';

export interface ReplaySweepOptions {
  readonly replays: Pick<Replays, 'sweep'>;
  /** Hints for accounts with replays that were charged but not completed. */
  readonly hints: HintIndex;
  readonly nowMs: () => number;
  readonly log: Logger;
}

const LEASE_MS = 30_000;
/** Replays are rare. When there are none, a sweep costs just 16 reads in this time. */
const SWEEP_MS = 30_000;

/** Creates a loop that completes or refunds replays whose process crashed after charging the account. */
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
