import { generationOf, publicId, tenantId } from '../../../core/ids/ids.ts';
import { atRiskFromMs } from '../../../core/routing/backlog.ts';
import type { CompiledTenant } from '../../../core/routing/compile-routes.ts';
import type { QueueRoute } from '../../../core/routing/routes.ts';
import { keyOf } from '../../../kube/object.ts';
import type { BacklogStore, InboxLook } from '../../../redis/backlog.ts';
import type { Logger } from '../../../telemetry/log.ts';
import { type Clock, sleep } from '../../../time/clock.ts';
import type { Cached } from '../../caches/caches.ts';
import { findCondition } from '../../engine/conditions.ts';

/** Interval between two checks of a tenant, with 20 % of jitter, ms. */
const LOOK_EVERY_MS = 60_000;
const TICK_MS = 1_000;
/** Maximum number of calls for an inbox in one check. The next check continues a longer log. */
const MOST_PAGES = 20;

export interface BacklogWatchDeps {
  readonly store: BacklogStore;
  readonly tenants: () => Iterable<string>;
  /** Applied routes; undefined while they are not known or must not be touched. */
  readonly compiled: (tenant: string) => CompiledTenant | undefined;
  readonly subscriptionsOf: (tenant: string) => Iterable<Cached<'Subscription'>>;
  /** Called when the status of the subscription differs from the result. */
  readonly onFlip: (key: string) => void;
  /** Redis's clock, ms. */
  readonly nowMs: () => number;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
  readonly random?: () => number;
  readonly log: Pick<Logger, 'debug'>;
}

/** Result of the last check of a subscription. */
interface Found {
  /** All events that wait now or later were accepted at this time or later, ms. */
  readonly notBeforeMs: number;
  readonly settledTo: string;
  readonly atRisk: boolean;
}

interface Suspect {
  readonly subscription: Cached<'Subscription'>;
  readonly queue: QueueRoute;
  readonly inbox: InboxLook;
}

/**
 * Finds the subscriptions whose oldest waiting event is near the end of its retention. A subscription without a backlog
 * cannot be at risk before most of the retention has passed, so it is not checked until then and costs almost nothing.
 */
export function createBacklogWatch(deps: BacklogWatchDeps) {
  const { store, clock, random = Math.random } = deps;
  /** By tenant, then by UID of the Subscription. */
  const found = new Map<string, Map<string, Found>>();
  const nextMs = new Map<string, number>();
  let over = new AbortController();

  function suspectsOf(tenant: string, compiled: CompiledTenant): Suspect[] {
    const nowMs = deps.nowMs();
    const suspects: Suspect[] = [];
    const before = found.get(tenant);
    // A new map forgets subscriptions that are gone.
    const known = new Map<string, Found>();
    found.set(tenant, known);
    for (const subscription of deps.subscriptionsOf(tenant)) {
      const { metadata, spec } = subscription;
      const queue = Object.hasOwn(compiled.routes.queues, spec.stream)
        ? compiled.routes.queues[spec.stream]
        : undefined;
      if (queue === undefined || compiled.verdicts.get(metadata.uid)?.ready !== 'Admitted') continue;
      const last = before?.get(metadata.uid);
      if (last !== undefined) known.set(metadata.uid, last);
      if (last !== undefined && !last.atRisk && nowMs < atRiskFromMs(last.notBeforeMs, queue.retentionMs)) continue;
      const inbox = {
        integration: publicId('Integration', tenant, spec.integration),
        sub: publicId('Subscription', metadata.namespace as string, metadata.name),
        inc: generationOf(metadata.uid),
        settledTo: last?.settledTo ?? '0-0',
      };
      suspects.push({ subscription, queue, inbox });
    }
    return suspects;
  }

  /** Continues in a long log until an open event shows whether the backlog is at risk. */
  async function lookOn({ inbox, queue }: Suspect, first: Awaited<ReturnType<BacklogStore['readOldestOpen']>>[number]) {
    let open = first;
    for (let page = 1; page < MOST_PAGES && !open.exact; page++) {
      if (open.ms === undefined || deps.nowMs() < atRiskFromMs(open.ms, queue.retentionMs)) break;
      open = (await store.readOldestOpen([{ ...inbox, settledTo: open.settledTo }]))[0] ?? open;
    }
    return open;
  }

  /** Reads both places where an event may wait: the queue and the inbox. Groups the calls by slot. */
  async function look(tenant: string, suspects: readonly Suspect[]): Promise<void> {
    const nowMs = deps.nowMs();
    const unrouted = new Map<Suspect, number | undefined>();
    for (const [stream, ofQueue] of Map.groupBy(suspects, ({ subscription }) => subscription.spec.stream)) {
      const { gen } = (ofQueue[0] as Suspect).queue;
      const inboxes = ofQueue.map(({ inbox }) => inbox);
      const times = await store.readUnrouted(tenantId(tenant), stream, gen, inboxes);
      for (const [i, suspect] of ofQueue.entries()) unrouted.set(suspect, times[i]);
    }
    for (const ofIntegration of Map.groupBy(suspects, ({ inbox }) => inbox.integration).values()) {
      const firsts = await store.readOldestOpen(ofIntegration.map(({ inbox }) => inbox));
      for (const [i, suspect] of ofIntegration.entries()) {
        const open = await lookOn(suspect, firsts[i] ?? { ms: undefined, exact: true, settledTo: '0-0' });
        const notBeforeMs = Math.min(unrouted.get(suspect) ?? nowMs, open.ms ?? nowMs);
        const isOpen = open.exact ? (open.ms ?? nowMs) : nowMs;
        const oldestMs = Math.min(unrouted.get(suspect) ?? nowMs, isOpen);
        conclude(tenant, suspect, { notBeforeMs, settledTo: open.settledTo, oldestMs, nowMs });
      }
    }
  }

  function conclude(
    tenant: string,
    { subscription, queue }: Suspect,
    seen: Omit<Found, 'atRisk'> & { readonly oldestMs: number; readonly nowMs: number },
  ): void {
    const { notBeforeMs, settledTo } = seen;
    const atRisk = seen.nowMs >= atRiskFromMs(seen.oldestMs, queue.retentionMs);
    found.get(tenant)?.set(subscription.metadata.uid, { notBeforeMs, settledTo, atRisk });
    const said = findCondition(subscription.status?.conditions, 'BacklogAtRisk')?.status === 'True';
    if (said !== atRisk) deps.onFlip(keyOf(subscription.metadata));
  }

  async function lookAt(tenant: string): Promise<void> {
    const compiled = deps.compiled(tenant);
    if (compiled === undefined) return;
    const suspects = suspectsOf(tenant, compiled);
    if (suspects.length > 0) await look(tenant, suspects);
  }

  async function run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await sleep(clock, TICK_MS, stop);
      for (const tenant of deps.tenants()) {
        if (stop.aborted) return;
        const dueMs = nextMs.get(tenant);
        if (dueMs !== undefined && clock.nowMs() < dueMs) continue;
        const share = dueMs === undefined ? random() : 0.8 + 0.4 * random();
        nextMs.set(tenant, clock.nowMs() + share * LOOK_EVERY_MS);
        // Spread the first checks over the interval.
        if (dueMs === undefined) continue;
        await lookAt(tenant).catch((err: unknown) => deps.log.debug({ err, tenant }, 'backlogs cannot be read'));
      }
    }
  }

  return {
    /** Starts over, until the signal aborts: another leader may have led since the last result. */
    begin(signal: AbortSignal): void {
      over.abort();
      over = new AbortController();
      found.clear();
      nextMs.clear();
      void run(AbortSignal.any([signal, over.signal]));
    },
    /** Checks one tenant now. */
    lookAt,
    /** Returns how many subscriptions were at risk at the last check. */
    countAtRisk: (): number => {
      let count = 0;
      for (const ofTenant of found.values()) for (const { atRisk } of ofTenant.values()) if (atRisk) count++;
      return count;
    },
    /** Returns whether the subscription's backlog is at risk; undefined before the first check. */
    isAtRisk: (tenant: string, uid: string): boolean | undefined => found.get(tenant)?.get(uid)?.atRisk,
  };
}

export type BacklogWatch = ReturnType<typeof createBacklogWatch>;
