import { type InboxRef, type InboxStore, parseInboxMember } from '../../redis/inbox-store.ts';
import type { OwnedQueue, QueueStore } from '../../redis/queue-store.ts';

/** Inboxes that are asked at once. */
const ASKED_AT_ONCE = 32;
/** How long a part of a pass takes: a fraction of the owner's lease, and about what routing waits for it. */
const PART_MS = 250;

export interface RetentionDeps {
  readonly inboxes: Pick<InboxStore, 'expire'>;
  readonly queues: Pick<QueueStore, 'catchUp' | 'lookup' | 'trim'>;
  readonly nowMs: () => number;
  /** Retention removed events before a subscription had got them: how many times both. */
  readonly onExpired?: (neverRouted: number) => void;
  readonly signal: AbortSignal;
}

/** One pass over a queue that removes what is too old. */
export interface TrimPass {
  /** Everything that was accepted before it goes; `cut` is the same as a stream id. */
  readonly cutMs: number;
  readonly cut: string;
  /**
   * Renews the ownership of the queue, then goes on for a part's time, or until the stop. `closed`: control state is
   * missing; `lost`: another router owns the queue, or it was made anew.
   */
  readonly advance: () => Promise<'more' | 'done' | 'closed' | 'lost'>;
}

/**
 * The inboxes end their references first, then the events go; bodies stay until then, for replay. With thousands of
 * inboxes, or millions of references, this takes longer than an owner may be silent: it is done in parts. Every inbox is
 * asked, also one that may hold nothing so old: to look would cost the same round trip, and each forgets old records, too.
 */
export function beginTrim(deps: RetentionDeps, queue: OwnedQueue, cutMs: number): TrimPass {
  const cut = `${cutMs}-0`;
  let members: readonly string[] | undefined;
  let waiting: InboxRef[] = [];

  async function expireNext(untilMs: number): Promise<void> {
    do {
      const inbox = waiting.pop();
      if (inbox === undefined) return;
      if ((await deps.inboxes.expire(inbox, deps.nowMs(), cut)).more) waiting.push(inbox);
    } while (deps.nowMs() < untilMs && !deps.signal.aborted);
  }

  return {
    cutMs,
    cut,
    async advance() {
      // Also where there is nothing to catch up: unlike `next`, it never lets go of a queue that has nothing to route.
      const renewed = await deps.queues.catchUp(queue, deps.nowMs(), 1, undefined);
      if (typeof renewed === 'string') return renewed === 'CLOSED' ? 'closed' : 'lost';
      const untilMs = deps.nowMs() + PART_MS;
      if (members === undefined) {
        const lookup = await deps.queues.lookup(queue, []);
        if (lookup === undefined) return 'closed';
        members = [...lookup.subscriptions].map(([integration, subInc]) => `${integration}/${subInc}`);
        waiting = members.map(parseInboxMember);
      }
      await Promise.all(Array.from({ length: ASKED_AT_ONCE }, () => expireNext(untilMs)));
      while (waiting.length === 0 && deps.nowMs() < untilMs && !deps.signal.aborted) {
        const trimmed = await deps.queues.trim(queue, deps.nowMs(), cut, members);
        if (trimmed === 'FENCED') return 'lost';
        if (trimmed.neverRouted > 0) deps.onExpired?.(trimmed.neverRouted);
        if (!trimmed.more) return 'done';
      }
      return 'more';
    },
  };
}
