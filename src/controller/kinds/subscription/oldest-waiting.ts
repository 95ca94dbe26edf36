import { tenantId } from '../../../core/ids/ids.ts';
import { atRiskFromMs } from '../../../core/routing/backlog.ts';
import type { QueueRoute } from '../../../core/routing/routes.ts';
import type { BacklogStore, InboxLook, OldestOpen } from '../../../plane/backlog.ts';
import type { Cached } from '../../caches/caches.ts';

/**
 * The maximum number of calls per inbox in a single check. For a longer log, the next check picks up where this one
 * stopped.
 */
const MOST_PAGES = 20;

/** A subscription whose backlog may be at risk. */
export interface Suspect {
  readonly subscription: Cached<'Subscription'>;
  readonly queue: QueueRoute;
  readonly inbox: InboxLook;
}

/** The oldest event waiting for a subscription, to be routed or to be delivered. */
export interface OldestWaiting {
  readonly suspect: Suspect;
  /** The time at which the event was accepted, in milliseconds. If there are no events, this is the current time. */
  readonly oldestMs: number;
  /** No event that waits now or later was accepted before this time (in milliseconds). */
  readonly notBeforeMs: number;
  readonly settledTo: string;
}

/**
 * Yields the oldest waiting event of each subscription. Events can wait for either routing or delivery, so both need to
 * be read. Calls are grouped by stream and by integration.
 */
export async function* readOldestWaiting(
  deps: { readonly store: BacklogStore; readonly nowMs: () => number },
  tenant: string,
  suspects: readonly Suspect[],
): AsyncGenerator<OldestWaiting> {
  const { store } = deps;
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
      const open = await readOn(deps, suspect, firsts[i] ?? { ms: undefined, exact: true, settledTo: '0-0' });
      const unroutedMs = unrouted.get(suspect) ?? nowMs;
      const openMs = open.ms ?? nowMs;
      yield {
        suspect,
        oldestMs: Math.min(unroutedMs, open.exact ? openMs : nowMs),
        notBeforeMs: Math.min(unroutedMs, openMs),
        settledTo: open.settledTo,
      };
    }
  }
}

/** Continues reading a long log until an open event reveals whether the backlog is at risk. */
async function readOn(
  { store, nowMs }: { readonly store: Pick<BacklogStore, 'readOldestOpen'>; readonly nowMs: () => number },
  { inbox, queue }: Suspect,
  first: OldestOpen,
): Promise<OldestOpen> {
  let open = first;
  for (let page = 1; page < MOST_PAGES && !open.exact; page++) {
    if (open.ms === undefined || nowMs() < atRiskFromMs(open.ms, queue.retentionMs)) break;
    open = (await store.readOldestOpen([{ ...inbox, settledTo: open.settledTo }]))[0] ?? open;
  }
  return open;
}
