import { streamIdOfRef } from '../../core/ids/refs.ts';
import { type BatchItem, type BatchPlan, planBatch, refuse, whyOf } from '../../core/routing/batch.ts';
import type { NotRoutedReason } from '../../core/routing/reasons.ts';
import type { Hint } from '../../redis/hints.ts';
import { type InboxRef, type InboxStore, inboxMember, parseInboxMember } from '../../redis/inbox-store.ts';
import type { LedgerTotal } from '../../redis/ledger-store.ts';
import type { Account, Lookup, OwnedQueue, QueueEntry } from '../../redis/queue-store.ts';
import { withDeadline } from '../../time/deadline.ts';
import { FencedError } from './fenced-error.ts';
import { queueMember } from './queue-member.ts';
import { type Hold, type Reservation, type ReservationDeps, reserveBatch } from './reservation.ts';

/** References one `route` call takes. */
const ROUTE_ITEMS = 200;
/** An inbox that has not answered by then stays behind: well within the owner's lease, or the batch could never commit. */
const ROUTE_PATIENCE_MS = 2_000;

export interface BatchDeps extends ReservationDeps {
  readonly inboxes: Pick<InboxStore, 'route'>;
  /** Lowers the dispatchers' hints: always before the cursor moves, also for duplicates. */
  readonly lower: (hints: readonly Hint[]) => Promise<void>;
  /** Tells the controller that control state is missing, or tokens are. */
  readonly alarm: (slot: string) => void;
}

export interface RoutedBatch {
  /** How many of the entries were gone through, from the first on: those that tokens do not cover wait. */
  readonly entries: number;
  readonly refused: BatchPlan['refused'];
  /** Subscriptions that could not take their part now: they stay behind, at the batch's start. */
  readonly paused: readonly string[];
  /** The same for those to be tried again by the router itself: no answer, or state that is being rebuilt. */
  readonly unreachable: readonly string[];
  /** References that lie in an inbox now; of those that could not take their part, none is counted before they did. */
  readonly routed: number;
  readonly tokens: number;
  readonly keyless: number;
  /** Events that at least one inbox took, or that one which is behind may still take. */
  readonly taken: ReadonlySet<string>;
}

const FINAL: Partial<Record<string, NotRoutedReason>> = {
  PENDING: 'integration_pending',
  REVOKED: 'integration_closed',
  GONE: 'not_subscribed',
  REGEN: 'not_subscribed',
};

function inboxesOf(subscriptions: Lookup['subscriptions']): Map<string, InboxRef> {
  const inboxes = new Map<string, InboxRef>();
  for (const [integration, subInc] of subscriptions) {
    inboxes.set(integration, parseInboxMember(`${integration}/${subInc}`));
  }
  return inboxes;
}

/** Letters of `route` for what was not taken. */
const REFUSED: Partial<Record<string, NotRoutedReason>> = { a: 'not_activated', s: 'skipped_to_now' };

/**
 * Routes one batch: asks every subscribed inbox, in one script per 200 references, and collects what the cursor's
 * commit has to say. Repeating a batch is safe: inboxes dedupe by their last ref. Of an account that enforces its tokens
 * they are reserved before, and what the inboxes charged is added to the account before the cursor moves.
 */
export async function routeBatch(
  deps: BatchDeps,
  queue: OwnedQueue,
  offered: readonly QueueEntry[],
  lookup: Lookup,
  /** Which entries a subscription takes part in; those that are behind are left out of the main pass. */
  wants: (member: string, id: string) => boolean = () => true,
  /** Every subscription of the queue, where the batch concerns only some. */
  everyone: Lookup['subscriptions'] = lookup.subscriptions,
): Promise<RoutedBatch | Hold> {
  const inboxes = inboxesOf(lookup.subscriptions);
  let entries = offered;
  let plan = planBatch(entries, inboxes.keys(), lookup.gates);
  let refusals: Reservation['refusals'] = new Map();
  let settles = false;
  if (!lookup.metered) {
    const offers = new Map<string, readonly BatchItem[]>();
    for (const [integration, items] of plan.offers) {
      const member = inboxMember(inboxes.get(integration) as InboxRef);
      const mine = items.filter(item => wants(member, item.id));
      if (mine.length > 0) offers.set(integration, mine);
    }
    const reservation = await reserveBatch(deps, queue, lookup.payer, {
      entries,
      offers,
      inboxes: () => inboxesOf(everyone),
    });
    if (typeof reservation === 'string') return reservation;
    ({ refusals, settles } = reservation);
    if (reservation.covered < entries.length) {
      entries = entries.slice(0, reservation.covered);
      plan = planBatch(entries, inboxes.keys(), lookup.gates);
    }
  }
  const paused: string[] = [];
  const unreachable: string[] = [];
  const hints: Hint[] = [];
  const taken = new Set<string>();
  const totals = new Map<string, LedgerTotal>();
  let routed = 0;
  let tokens = 0;

  async function offer(integration: string, inbox: InboxRef, items: readonly BatchItem[]): Promise<void> {
    const mine: BatchItem[] = [];
    const complete = await offerParts(integration, inbox, items, mine);
    // Who stays behind is offered the whole batch again: it counts then, once.
    for (const item of complete ? mine : items) taken.add(item.ref);
    if (!complete) return;
    routed += mine.length;
    for (const item of mine) tokens += item.tokens;
  }

  /** False when the inbox stays behind. What it took meanwhile is deduped by it when it is offered again. */
  async function offerParts(integration: string, inbox: InboxRef, items: readonly BatchItem[], mine: BatchItem[]) {
    const member = inboxMember(inbox);
    const refusal = refusals.get(integration);
    for (let at = 0; at < items.length; at += ROUTE_ITEMS) {
      const part = items.slice(at, at + ROUTE_ITEMS);
      let reply: Awaited<ReturnType<InboxStore['route']>>;
      try {
        if (refusal === 'UNREACHABLE') throw new Error('no answer when it was looked at');
        reply =
          refusal === undefined
            ? await withDeadline(ROUTE_PATIENCE_MS, () =>
                deps.inboxes.route(inbox, deps.nowMs(), queue.epoch, queue.gen, lookup.payer, part),
              )
            : { answer: refusal };
      } catch (error) {
        // Out of memory concerns every inbox: the whole batch waits. Anything else concerns this slot alone.
        if (error instanceof Error && error.message.startsWith('OOM')) throw error;
        unreachable.push(member);
        return false;
      }
      if (reply.answer === 'FENCED') throw new FencedError(`queue ${queue.queue} is owned by a newer router`);
      if (reply.answer === 'PAUSED') {
        paused.push(member);
        return false;
      }
      if (reply.answer === 'CLOSED') {
        deps.alarm(`i:${integration}`);
        unreachable.push(member);
        return false;
      }
      if (reply.answer !== 'OK') {
        for (const item of part) refuse(plan.refused, item.ref, integration, FINAL[reply.answer] as NotRoutedReason);
        continue;
      }
      for (const [i, item] of part.entries()) {
        const reason = REFUSED[reply.flags[i] as string];
        if (reason === undefined) mine.push(item);
        else refuse(plan.refused, item.ref, integration, reason);
      }
      if (reply.ledger !== undefined) totals.set(integration, reply.ledger);
      hints.push({ member, dueMs: deps.nowMs(), home: queueMember(queue.tenant, queue.queue) });
    }
    return true;
  }

  await Promise.all(
    [...plan.offers].map(async ([integration, items]) => {
      const inbox = inboxes.get(integration) as InboxRef;
      const member = inboxMember(inbox);
      const mine = items.filter(item => wants(member, item.id));
      for (const item of items) if (!wants(member, item.id)) taken.add(item.ref);
      if (mine.length > 0) await offer(integration, inbox, mine);
    }),
  );
  // Who is behind, or fell behind just now, is asked again later: its reasons are noted then.
  const later = new Set([...paused, ...unreachable]);
  for (const [ref, reasons] of plan.refused) {
    const id = streamIdOfRef(ref);
    for (const integration of reasons.keys()) {
      const member = inboxMember(inboxes.get(integration) as InboxRef);
      if (later.has(member) || !wants(member, id)) reasons.delete(integration);
    }
    if (reasons.size === 0) plan.refused.delete(ref);
  }
  // An inbox that did not answer may have charged all the same: its tokens stay set aside until it is looked at.
  const release =
    !settles || unreachable.length > 0
      ? undefined
      : { queue: queueMember(queue.tenant, queue.queue), epoch: queue.epoch };
  // Both before the cursor moves, in one round trip.
  await Promise.all([
    hints.length > 0 ? deps.lower(hints) : undefined,
    release !== undefined || totals.size > 0 ? deps.ledger.fold(lookup.payer, totals, release) : undefined,
  ]);
  return {
    entries: entries.length,
    refused: plan.refused,
    paused,
    unreachable,
    routed,
    tokens,
    keyless: plan.keyless,
    taken,
  };
}

/** Counters and reasons of a batch; `entries` only for the main pass, which counts each event once. */
export function accountOf(batch: RoutedBatch, entries: readonly QueueEntry[] = []): Account {
  const counters = new Map<string, number>();
  const count = (name: string, by: number) => {
    if (by > 0) counters.set(name, (counters.get(name) ?? 0) + by);
  };
  let bytes = 0;
  for (const entry of entries) bytes += entry.bytes;
  count('in', entries.length);
  count('bytes', bytes);
  count('routed', batch.routed);
  count('tokens', batch.tokens);
  if (entries.length > 0) {
    count('notRouted', entries.length - batch.taken.size);
    count('r:missing_group_key', batch.keyless);
  }
  for (const reasons of batch.refused.values()) for (const reason of reasons.values()) count(`r:${reason}`, 1);
  return { counters, why: whyOf(batch.refused) };
}
