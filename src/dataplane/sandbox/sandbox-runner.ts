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
  /** Of runs. */
  readonly hints: HintIndex;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  readonly alarm: (slot: string) => void;
  readonly nowMs: () => number;
  readonly log: Logger;
}

/** Runs that one process works on at once. */
const RUNS_AT_ONCE = 1;
/** How long a picked run is this process's: others go on with it then, if it died. */
const LEASE_MS = 10_000;
/** Runs are rare: 16 reads in this time are all that an idle sandbox costs. */
const SWEEP_MS = 30_000;
/** Of the time of a process a run takes one part at most, where production's deliveries may have three. */
const GIVEN_WAY = 3;
const LONGEST_WAY_MS = 250;

/** Drives the sandbox runs that are due. Production's work in the same process has the greater part of its time. */
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
