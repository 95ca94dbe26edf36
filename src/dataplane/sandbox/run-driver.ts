import type { RedisClient } from '../../redis/client.ts';
import { inboxMember, parseInboxMember } from '../../redis/inbox-store.ts';
import { readDues } from '../../redis/sandbox-reader.ts';
import type { SandboxSource } from '../../redis/sandbox-source.ts';
import { createSandboxStore, SANDBOX_LIMITS, type SandboxLimits } from '../../redis/sandbox-store.ts';
import type { SubscriptionKeys } from '../dispatcher/subscription.ts';
import { deliverRun } from './run-deliveries.ts';
import { routeRun } from './run-routing.ts';
import { openRun, parseRunMember } from './run-view.ts';

/** Maximum time in milliseconds spent on attempts before the run is returned and other runs can continue. */
const TURN_MS = 1_000;
/**
 * Retries of a run are made together if they're due within this time in milliseconds, which grows slightly with each
 * inbox.
 */
const TOGETHER_MS = 20;
const TOGETHER_MS_AN_INBOX = 0.1;

export interface RunDriverOptions {
  readonly redis: RedisClient;
  /** Production, as runs read it. */
  readonly source: SandboxSource;
  readonly nowMs: () => number;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  readonly alarm: (slot: string) => void;
  /** Unique id for each start of the process. */
  readonly owner: string;
  readonly giveWay: (busyMs: number) => Promise<void>;
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
  const { redis, source, nowMs, monotonicMs, owner } = options;
  const limits = options.limits ?? SANDBOX_LIMITS;
  const store = createSandboxStore(redis, nowMs, limits);
  let turn = 0;
  const nextToken = () => `${owner}${(turn++).toString(36)}`;
  const routing = { source, nowMs, alarm: options.alarm, owner, nextToken };
  const delivering = { ...options, nextToken };

  return async member => {
    const { tenant, run } = parseRunMember(member);
    const known = await store.readRun(tenant, run);
    if (known === undefined) return null;
    const begunMs = monotonicMs();
    const view = await openRun(redis, source, nowMs, tenant, run, known);
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
