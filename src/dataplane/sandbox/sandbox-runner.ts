import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { KeyRing } from '../../core/delivery/key-ring.ts';
import type { HintIndex } from '../../hints/hints.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { Logger } from '../../telemetry/log.ts';
import { createDueLoop, type DueLoop } from '../due-loop.ts';
import { createRunDriver } from './run-driver.ts';

export interface SandboxRunnerOptions {
  readonly redis: RedisClient;
  /** Hint index for runs. */
  readonly hints: HintIndex;
  readonly keys: KeyRing;
  readonly version: string;
  readonly alarm: (slot: string) => void;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** The maximum number of runs a process works on concurrently. */
const RUNS_AT_ONCE = 1;
/**
 * The time for which a run is owned by this process. Should it crash, other processes can continue the run after this
 * time.
 */
const LEASE_MS = 10_000;
/** There are usually only a few runs. If there are none, the sandbox only needs 16 reads during this time. */
const SWEEP_MS = 30_000;
/** The runner pauses for three times as long as it was busy, leaving the rest of the time to production deliveries. */
const GIVEN_WAY = 3;
const LONGEST_WAY_MS = 250;

/** Creates a loop that drives due sandbox runs while leaving most of the process time to production. */
export function createSandboxRunner(options: SandboxRunnerOptions): DueLoop {
  const { hints, nowMs, log } = options;
  const drive = createRunDriver({
    ...options,
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
    giveWay: async busyMs => {
      await delay(Math.min(LONGEST_WAY_MS, busyMs * GIVEN_WAY));
    },
  });
  return createDueLoop({
    hints,
    nowMs,
    log,
    concurrency: RUNS_AT_ONCE,
    leaseMs: LEASE_MS,
    sweepMs: SWEEP_MS,
    token: randomUUID,
    run: drive,
  });
}
