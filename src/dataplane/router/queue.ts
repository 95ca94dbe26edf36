import { isAfter } from '../../core/ids/refs.ts';
import type { InboxStore } from '../../redis/inbox-store.ts';
import {
  type BatchResult,
  type CatchUpResult,
  type Lookup,
  OWNER_LEASE_MS,
  type OwnedQueue,
  type QueuePage,
  type QueueRef,
  type QueueStore,
  wokenMember,
} from '../../redis/queue-store.ts';
import { accountOf, type BatchDeps, type RoutedBatch, routeBatch } from './batch.ts';
import type { Hold } from './reservation.ts';
import { beginTrim, type RetentionDeps, type TrimPass } from './retention.ts';
import type { TraceRouting } from './routing-spans.ts';

const BATCH_EVENTS = 256;
/** References that one batch may make: bounds the time until the cursor moves. */
const BATCH_REFERENCES = 20_000;
const TRIM_EVERY_MS = 60_000;
/** How soon state that is missing, or an inbox that did not answer, is tried again. */
const RETRY_MS = 1_000;
/** When a queue that waits for tokens is looked at again; who tops the account up wakes it at once. */
const HELD_MS: Record<Hold, number> = { SHORT: 30_000, CLOSED: 30_000, BUSY: RETRY_MS };

export interface QueueRouterDeps extends BatchDeps, RetentionDeps {
  readonly inboxes: Pick<InboxStore, 'route' | 'expire'>;
  readonly queues: QueueStore;
  /** Unique for each start of a process: a restarted router is another owner. */
  readonly owner: string;
  /** `oldestMs`: when the first of the main pass's events was accepted; undefined for a catch-up. */
  readonly onBatch: (batch: RoutedBatch, entries: number, oldestMs?: number) => void;
  /** Undefined: routing is not traced. */
  readonly trace?: TraceRouting | undefined;
  /** Nothing of a batch could be routed, for want of tokens or of the account. */
  readonly onHeld?: (cause: Hold) => void;
  /** Events of a batch at most; default 256. */
  readonly batchEvents?: number;
}

/**
 * Routes one queue until it has nothing to do. Everything is read from the persisted cursor; nothing of a batch is kept
 * over a failure, so that any router may go on where this one stopped.
 *
 * @returns when the queue is due again (ms of Redis's clock): for retention, for a retry; null when never.
 */
export async function routeQueue(
  deps: QueueRouterDeps,
  ref: QueueRef,
  trimmed: Map<string, number>,
): Promise<number | null> {
  const ownership = await deps.queues.own(ref, deps.nowMs(), deps.owner);
  if (ownership.answer === 'HELD') return Math.min(ownership.untilMs, deps.nowMs() + OWNER_LEASE_MS);
  // A hint may outlive its queue, as the one for retention does.
  if (ownership.answer === 'GONE') return null;
  if (ownership.answer === 'CLOSED') {
    deps.alarm(`q:${ref.tenant}:${ref.queue}`);
    return deps.nowMs() + RETRY_MS;
  }
  const queue: OwnedQueue = { ...ref, epoch: ownership.epoch, gen: ownership.gen };
  const name = `${ref.tenant}:${ref.queue}`;
  const most = deps.batchEvents ?? BATCH_EVENTS;
  let limit = most;
  let retryCatchUpAt = 0;
  let heldUntil = 0;
  let trim: TrimPass | undefined;
  let result: BatchResult | undefined;
  while (!deps.signal.aborted) {
    const page = await deps.queues.next(queue, deps.nowMs(), limit, result);
    result = undefined;
    if (typeof page === 'string') return page === 'CLOSED' ? deps.nowMs() + RETRY_MS : deps.nowMs();
    const now = deps.nowMs();
    let { behind } = page;
    // Not into an inbox that may have ended already what is too old.
    if (trim === undefined && page.wake.length > 0 && now >= retryCatchUpAt) {
      const outcome = await catchUp(deps, queue, page);
      if (outcome === 'refused') return deps.nowMs();
      if (outcome.retryMs > 0) retryCatchUpAt = deps.nowMs() + outcome.retryMs;
      // Who has just joined takes part in this very page: its entries are the first that the catch-up did not bring.
      behind = outcome.behind;
    }
    const oldestMs = page.oldestId === undefined ? undefined : Number(page.oldestId.split('-')[0]);
    const cutMs = now - page.retentionMs;
    const due = oldestMs !== undefined && oldestMs < cutMs;
    const mayTrimAt = (trimmed.get(name) ?? 0) + TRIM_EVERY_MS;
    // The retention grew since the pass began: what it would remove is to stay.
    if (trim !== undefined && trim.cutMs > cutMs) trim = undefined;
    if (trim === undefined && due && mayTrimAt <= now) {
      trimmed.set(name, now);
      trim = beginTrim(deps, queue, cutMs);
    }
    if (trim !== undefined) {
      const part = await trim.advance();
      if (part === 'closed') return deps.nowMs() + RETRY_MS;
      if (part === 'lost') return deps.nowMs();
      // Events of this page that are too old may be gone, and the cursor with them; younger ones need not wait.
      const goesOn = now >= heldUntil && page.entries[0] !== undefined && !isAfter(trim.cut, page.entries[0].id);
      if (part === 'done') trim = undefined;
      if (!goesOn) continue;
    }
    if (page.entries.length === 0) {
      if (page.wake.length > 0) {
        if (deps.nowMs() >= retryCatchUpAt || !(await deps.queues.release(queue, true))) continue;
        return retryCatchUpAt;
      }
      if (oldestMs === undefined) return null;
      return due ? mayTrimAt : oldestMs + page.retentionMs + 1;
    }
    if (now < heldUntil) {
      // Those that are behind may cost less than what the main pass waits for.
      if (page.wake.length > 0 && now >= retryCatchUpAt) continue;
      await deps.queues.release(queue);
      return page.wake.length > 0 ? Math.min(heldUntil, retryCatchUpAt) : heldUntil;
    }
    const lookup = await lookUp(deps, queue, page);
    if (lookup === undefined) return deps.nowMs() + RETRY_MS;
    limit = eventsFor(lookup.subscriptions.size, most);
    const offered = page.entries.slice(0, limit);
    const beganMs = deps.trace === undefined ? 0 : Date.now();
    const batch = await routeBatch(deps, queue, offered, lookup, member => !behind.has(member));
    if (typeof batch === 'string') {
      deps.onHeld?.(batch);
      heldUntil = deps.nowMs() + HELD_MS[batch];
      continue;
    }
    const entries = offered.slice(0, batch.entries);
    deps.onBatch(batch, entries.length, acceptedMs(entries[0]));
    void deps.trace?.({ queue, ids: entries.map(({ id }) => id), beganMs });
    result = {
      ...accountOf(batch, entries),
      from: page.cursor,
      to: (entries.at(-1) as { id: string }).id,
      behind: [...batch.paused, ...batch.unreachable],
      wake: batch.unreachable,
    };
  }
  // On a stop the batch's commit is left out: whoever goes on routes it again, and the inboxes dedupe it.
  await deps.queues.release(queue);
  return deps.nowMs();
}

function acceptedMs(entry: { readonly id: string } | undefined): number | undefined {
  return entry === undefined ? undefined : Number.parseInt(entry.id, 10);
}

/** Events of one batch, by the number of subscriptions that each may go to. */
function eventsFor(subscriptions: number, most: number): number {
  return Math.max(1, Math.min(most, Math.floor(BATCH_REFERENCES / Math.max(1, subscriptions))));
}

async function lookUp(
  deps: QueueRouterDeps,
  queue: OwnedQueue,
  page: Pick<QueuePage, 'entries'>,
): Promise<Lookup | undefined> {
  const groupKeys = new Set<string>();
  for (const { groupKey } of page.entries) if (groupKey !== '') groupKeys.add(groupKey);
  const lookup = await deps.queues.lookup(queue, [...groupKeys]);
  if (lookup === undefined) deps.alarm(`t:${queue.tenant}`);
  return lookup;
}

type CaughtUp = { readonly behind: QueuePage['behind']; readonly retryMs: number };

/** One step for the whole cohort of subscriptions that were woken: they are read once, from the earliest position. */
async function catchUp(deps: QueueRouterDeps, queue: OwnedQueue, page: QueuePage): Promise<CaughtUp | 'refused'> {
  const woken = Map.groupBy(page.wake, wokenMember);
  const cohort = [...woken.keys()].filter(member => page.behind.has(member));
  const entriesOf = (members: readonly string[]) => members.flatMap(member => woken.get(member) ?? []);
  const astray = entriesOf([...woken.keys()].filter(member => !page.behind.has(member)));
  const position = (member: string) => page.behind.get(member) as string;
  const from = cohort
    .map(position)
    .reduce<string | undefined>((a, b) => (a !== undefined && isAfter(b, a) ? a : b), undefined);
  const limit = eventsFor(cohort.length, deps.batchEvents ?? BATCH_EVENTS);
  const read = await deps.queues.catchUp(queue, deps.nowMs(), limit, from, nothingMoved(astray));
  if (typeof read === 'string') return 'refused';
  if (cohort.length === 0) return { behind: read.behind, retryMs: 0 };
  const lookup = await lookUp(deps, queue, read);
  if (lookup === undefined) return { behind: read.behind, retryMs: RETRY_MS };
  const members = new Set(cohort);
  const cohortOnly = new Map([...lookup.subscriptions].filter(([int, subInc]) => members.has(`${int}/${subInc}`)));
  const batch = await routeBatch(
    deps,
    queue,
    read.entries,
    { ...lookup, subscriptions: cohortOnly },
    (member, id) => members.has(member) && isAfter(id, position(member)),
    lookup.subscriptions,
  );
  if (typeof batch === 'string') {
    deps.onHeld?.(batch);
    return { behind: read.behind, retryMs: HELD_MS[batch] };
  }
  deps.onBatch(batch, 0);
  const failed = new Set([...batch.paused, ...batch.unreachable]);
  const entries = read.entries.slice(0, batch.entries);
  const whole = entries.length === read.entries.length;
  const to = whole && entries.length < limit ? read.cursor : (entries.at(-1) as { id: string }).id;
  const moved = cohort
    .filter(member => !failed.has(member) && (isAfter(to, position(member)) || to === read.cursor))
    .map(member => ({ sub: member, from: position(member), to }));
  const joined = to === read.cursor ? moved.map(({ sub }) => sub) : [];
  const committed: CatchUpResult = { ...accountOf(batch), moved, woken: entriesOf([...joined, ...batch.paused]) };
  const answer = await deps.queues.catchUp(queue, deps.nowMs(), 1, undefined, committed);
  if (typeof answer === 'string') return 'refused';
  return { behind: answer.behind, retryMs: batch.unreachable.length > 0 ? RETRY_MS : 0 };
}

function nothingMoved(woken: readonly string[]): CatchUpResult | undefined {
  return woken.length === 0 ? undefined : { counters: new Map(), why: [], moved: [], woken };
}
