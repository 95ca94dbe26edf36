import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { RedisClient } from '../../redis/client.ts';
import type { HintIndex } from '../../redis/hints.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { SubscriptionKeys } from '../dispatcher/subscription.ts';
import { createDueLoop, type DueLoop } from '../due-loop.ts';
import { createRunDriver } from './run-driver.ts';

export interface SandboxRunnerOptions {
  readonly redis: RedisClient;
  /** The hint index of the runs. */
  readonly hints: HintIndex;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  readonly alarm: (slot: string) => void;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** The maximum number of runs that a process works on concurrently. */
const RUNS_AT_ONCE = 1;
/**
 * The time for which this process owns a run. If the process crashes, other processes can continue the run after this
 * time.
 */
const LEASE_MS = 10_000;
/** Runs are rare. If there are none, the sandbox makes only 16 reads in this time. */
const SWEEP_MS = 30_000;
/**
 * The runner pauses for three times as long as it was busy so that production deliveries can use the rest of the time.
 */
const GIVEN_WAY = 3;
const LONGEST_WAY_MS = 250;

/** Creates a loop that drives the due sandbox runs. Most of the process time is left for production. */
export function createSandboxRunner(options: SandboxRunnerOptions): DueLoop {
  const { hints, nowMs, log } = options;
  const drive = createRunDriver({
    ...options,
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
    owner: randomUUID(),
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
