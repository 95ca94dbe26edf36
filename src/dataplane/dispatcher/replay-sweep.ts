import { randomUUID } from 'node:crypto';
import type { HintIndex } from '../../redis/hints.ts';
import type { Replays } from '../../redis/replays.ts';
import type { Logger } from '../../telemetry/log.ts';
import { createDueLoop, type DueLoop } from '../due-loop.ts';

export interface ReplaySweepOptions {
  readonly replays: Pick<Replays, 'sweep'>;
  /** Of accounts with replays that are charged and not complete. */
  readonly hints: HintIndex;
  readonly nowMs: () => number;
  readonly log: Logger;
}

const LEASE_MS = 30_000;
/** Replays are rare: 16 reads in this time are all that an idle one costs. */
const SWEEP_MS = 30_000;

/** Completes, or refunds, replays whose starter died after the account was charged. */
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
