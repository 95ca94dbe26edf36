import { atRiskFromMs } from '../../../core/routing/backlog.ts';
import type { CompiledTenant } from '../../../core/routing/compile-routes.ts';
import { keyOf } from '../../../kube/object.ts';
import type { BacklogStore } from '../../../plane/backlog.ts';
import type { Logger } from '../../../telemetry/log.ts';
import { type Clock, sleep } from '../../../time/clock.ts';
import type { Cached } from '../../caches/caches.ts';
import { findCondition } from '../../engine/conditions.ts';
import { inboxOf } from './inbox.ts';
import { readOldestWaiting, type Suspect } from './oldest-waiting.ts';

/** The interval between two checks of a tenant, in milliseconds. Up to 20% of jitter is added to it. */
const CHECK_EVERY_MS = 60_000;
const TICK_MS = 1_000;
export interface BacklogWatchDeps {
  readonly store: BacklogStore;
  readonly tenants: () => Iterable<string>;
  /** Returns the applied routes, or undefined if they are not known or must not be used. */
  readonly compiled: (tenant: string) => CompiledTenant | undefined;
  readonly subscriptionsOf: (tenant: string) => Iterable<Cached<'Subscription'>>;
  /** Called when the result differs from the subscription's status. */
  readonly onFlip: (key: string) => void;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: () => number;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  readonly random?: () => number;
  readonly log: Pick<Logger, 'debug'>;
}

/** The result of the last check for a subscription. */
interface Found {
  /** No event that waits now or later was accepted before this time (in milliseconds). */
  readonly notBeforeMs: number;
  readonly settledTo: string;
  readonly atRisk: boolean;
}

/**
 * Finds subscriptions where a waiting event is near the end of its retention. To reduce the cost, a subscription
 * without a backlog is only checked when most of the retention has passed, because it can't be at risk earlier.
 */
export function createBacklogWatch(deps: BacklogWatchDeps) {
  const { clock, random = Math.random } = deps;
  /** The results of the last check, by tenant and by the Subscription's UID. */
  const found = new Map<string, Map<string, Found>>();
  const nextMs = new Map<string, number>();
  let over = new AbortController();

  async function check(tenant: string): Promise<void> {
    const compiled = deps.compiled(tenant);
    if (compiled === undefined) return;
    const nowMs = deps.nowMs();
    // Use a new map so that deleted subscriptions are dropped from the results.
    const results = new Map<string, Found>();
    const before = found.get(tenant) ?? results;
    found.set(tenant, results);
    const suspects: Suspect[] = [];
    for (const subscription of deps.subscriptionsOf(tenant)) {
      const queue = queueOf(compiled, subscription);
      if (queue === undefined) continue;
      const { uid } = subscription.metadata;
      const last = before.get(uid);
      if (last !== undefined) results.set(uid, last);
      if (last !== undefined && !last.atRisk && nowMs < atRiskFromMs(last.notBeforeMs, queue.retentionMs)) continue;
      suspects.push({ subscription, queue, inbox: { ...inboxOf(subscription), settledTo: last?.settledTo ?? '0-0' } });
    }
    if (suspects.length === 0) return;
    for await (const { suspect, oldestMs, notBeforeMs, settledTo } of readOldestWaiting(deps, tenant, suspects)) {
      const { subscription, queue } = suspect;
      const atRisk = nowMs >= atRiskFromMs(oldestMs, queue.retentionMs);
      results.set(subscription.metadata.uid, { notBeforeMs, settledTo, atRisk });
      const reported = findCondition(subscription.status?.conditions, 'BacklogAtRisk')?.status === 'True';
      if (reported !== atRisk) deps.onFlip(keyOf(subscription.metadata));
    }
  }

  async function run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await sleep(clock, TICK_MS, stop);
      const tenants = new Set(deps.tenants());
      for (const tenant of found.keys()) if (!tenants.has(tenant)) found.delete(tenant);
      for (const tenant of tenants) {
        if (stop.aborted) return;
        const dueMs = nextMs.get(tenant);
        if (dueMs !== undefined && clock.nowMs() < dueMs) continue;
        const share = dueMs === undefined ? random() : 0.8 + 0.4 * random();
        nextMs.set(tenant, clock.nowMs() + share * CHECK_EVERY_MS);
        // Spread the first checks over the interval to avoid a load spike.
        if (dueMs === undefined) continue;
        await check(tenant).catch((err: unknown) => deps.log.debug({ err, tenant }, 'failed to read backlogs'));
      }
    }
  }

  return {
    /**
     * Starts running checks again. Checks continue to run until the signal is aborted. Previous results are dropped
     * because there may have been a different leader in the meantime. At the end, the results are dropped as well,
     * because only the leader reports them.
     */
    begin(signal: AbortSignal): void {
      over.abort();
      over = new AbortController();
      found.clear();
      nextMs.clear();
      const { signal: replaced } = over;
      void run(AbortSignal.any([signal, replaced])).then(() => {
        if (!replaced.aborted) found.clear();
      });
    },
    /** Checks the given tenant right away. */
    check,
    /** Returns the number of subscriptions that were at risk during their last check. */
    countAtRisk: (): number =>
      [...found.values()].flatMap(ofTenant => [...ofTenant.values()]).filter(({ atRisk }) => atRisk).length,
    /** Returns true if this subscription's backlog is at risk. Undefined before the first check. */
    isAtRisk: (tenant: string, uid: string): boolean | undefined => found.get(tenant)?.get(uid)?.atRisk,
  };
}

/** Returns the queue of an admitted subscription, or undefined if there are no waiting events. */
function queueOf({ routes, verdicts }: CompiledTenant, { metadata, spec }: Cached<'Subscription'>) {
  if (verdicts.get(metadata.uid)?.ready !== 'Admitted') return undefined;
  return Object.hasOwn(routes.queues, spec.stream) ? routes.queues[spec.stream] : undefined;
}
