import type { RedisClient } from '../../redis/client.ts';
import { createInboxStore, inboxMember, parseInboxMember } from '../../redis/inbox-store.ts';
import { readDues } from '../../redis/sandbox-reader.ts';
import { createSandboxStore, SANDBOX_LIMITS, type SandboxLimits } from '../../redis/sandbox-store.ts';
import type { SubscriptionKeys } from '../dispatcher/subscription.ts';
import { deliverRun } from './run-deliveries.ts';
import { routeRun } from './run-routing.ts';
import { openRun, parseRunMember } from './run-view.ts';

/** Attempts are made for so long, then the run is given back, so that other runs come to their turn, ms. */
const TURN_MS = 1_000;
/** Retries of a run that are due within this are made together, ms; and for each inbox a little more. */
const TOGETHER_MS = 20;
const TOGETHER_MS_AN_INBOX = 0.1;

export interface RunDriverOptions {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  readonly alarm: (slot: string) => void;
  /** Unique for this process's start. */
  readonly owner: string;
  readonly giveWay: (busyMs: number) => Promise<void>;
  readonly limits?: SandboxLimits;
}

/**
 * Drives sandbox runs: routes what came, makes the attempts that are due. Everything is read from the run's own slot, so
 * that any process may go on where another one died; production's slots are only read.
 *
 * @returns a function of a run's member (`ten:run`) to when the run is due next (ms), or null
 */
export function createRunDriver(options: RunDriverOptions): (member: string) => Promise<number | null> {
  const { redis, nowMs, monotonicMs, owner } = options;
  const limits = options.limits ?? SANDBOX_LIMITS;
  const store = createSandboxStore(redis, nowMs, limits);
  let turn = 0;
  const nextToken = () => `${owner}${(turn++).toString(36)}`;
  const routing = { redis, nowMs, alarm: options.alarm, owner, nextToken };
  const delivering = { ...options, inboxes: createInboxStore(redis), nextToken };

  return async member => {
    const { tenant, run } = parseRunMember(member);
    const known = await store.readRun(tenant, run);
    if (known === undefined) return null;
    const begunMs = monotonicMs();
    const view = await openRun(redis, nowMs, tenant, run, known);
    let soonest = Number.POSITIVE_INFINITY;
    for (const queue of view.queues) {
      const left = await store.readRoom(tenant, run);
      if (left <= 0) break;
      const { routed, nextMs } = await routeRun(routing, view, queue, left);
      if (routed > 0) await store.countDeliveries(tenant, run, routed);
      soonest = Math.min(soonest, nextMs ?? Number.POSITIVE_INFINITY);
    }
    const inboxes = [...view.inboxes.keys()].map(parseInboxMember);
    const dues = await readDues(view.ofRun, nowMs(), inboxes);
    await options.giveWay(monotonicMs() - begunMs);
    const untilMs = monotonicMs() + TURN_MS;
    for (const inbox of inboxes) {
      const dueMs = dues.get(inboxMember(inbox)) ?? Number.POSITIVE_INFINITY;
      if (dueMs > nowMs()) soonest = Math.min(soonest, dueMs);
      else if (monotonicMs() >= untilMs) soonest = nowMs();
      else soonest = Math.min(soonest, (await deliverRun(delivering, view, inbox, untilMs)) ?? soonest);
    }
    if (soonest >= known.endsMs) return null;
    return Math.max(soonest, Math.ceil(nowMs() + TOGETHER_MS + inboxes.length * TOGETHER_MS_AN_INBOX));
  };
}
