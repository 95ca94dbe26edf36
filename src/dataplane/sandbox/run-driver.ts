import { createSandboxStore, SANDBOX_LIMITS, type SandboxLimits } from '../../part/sandbox/sandbox-store.ts';
import type { RedisClient } from '../../redis/client.ts';
import { deliverRun, type RunDeliveryDeps } from './run-deliveries.ts';
import { routeRun } from './run-routing.ts';
import { openRun, parseRunMember } from './run-view.ts';

/** The maximum time in milliseconds spent on attempts before the run is returned and other runs can continue. */
const TURN_MS = 1_000;
/** The time to wait before a queue that could not be read is read again, in milliseconds. */
const RETRY_MS = 1_000;
/** If several retries of a run are due within this time (in milliseconds), they are made together. */
const TOGETHER_MS = 20;

export interface RunDriverOptions extends RunDeliveryDeps {
  readonly redis: RedisClient;
  readonly alarm: (slot: string) => void;
  readonly limits?: SandboxLimits;
}

/**
 * Creates a function that drives sandbox runs by routing events and making any due attempts. All state is read from the
 * slot of the run, so another process can carry on after a crash. Note that production slots are only ever read.
 *
 * @returns a function that, given the member of a run (`ten:run`), resolves with its due time in milliseconds, or
 *   null
 */
export function createRunDriver(options: RunDriverOptions): (member: string) => Promise<number | null> {
  const { redis, nowMs, monotonicMs } = options;
  const store = createSandboxStore(redis, nowMs, options.limits ?? SANDBOX_LIMITS);

  return async member => {
    const { tenant, run } = parseRunMember(member);
    const known = await store.readRun(tenant, run);
    if (known === undefined) return null;
    const begunMs = monotonicMs();
    const view = openRun(redis, tenant, run, known);
    let soonest = Number.POSITIVE_INFINITY;
    const readable: string[] = [];
    for (const queue of view.queues) {
      if (await routeRun(store, view, queue)) {
        readable.push(queue);
      } else {
        options.alarm(`q:${tenant}:${queue}`);
        soonest = Math.min(soonest, nowMs() + RETRY_MS);
      }
    }
    await options.giveWay(monotonicMs() - begunMs);
    const untilMs = monotonicMs() + TURN_MS;
    for (const queue of readable) {
      soonest = Math.min(soonest, (await deliverRun(options, view, queue, untilMs)) ?? soonest);
    }
    if (soonest >= known.endsMs) return null;
    return Math.max(soonest, nowMs() + TOGETHER_MS);
  };
}
