import { setTimeout as delay } from 'node:timers/promises';
import type { Completion } from '../../../part/claims/exchange.ts';
import type { HeldClaim } from './held-claim.ts';
import type { OpenedSlot, OpenSlots } from './opened-slots.ts';

/** Retry interval for slots that could not be read or opened. */
const RETRY_MS = 500;
/** The maximum number of slots without any claims that are kept in memory. */
const KEPT_AT_MOST = 20_000;
/**
 * The number of attempts to start in each turn of the event loop. In between, it reads pushes and responses. Without
 * these breaks, a push would have to wait until all events of the last reply have been sent.
 */
const STARTS_AT_ONCE = 16;

export interface SlotQueuesDeps {
  readonly openSlots: OpenSlots;
  /** The version of the rows that was last mentioned by the part. */
  readonly version: () => string;
  readonly wallMs: () => number;
  /** The maximum age of a claim that can still be used to send an event. */
  readonly isFresh: (held: HeldClaim) => boolean;
  /** Makes an attempt for the claim. Never rejects. */
  readonly send: (slot: OpenedSlot, held: HeldClaim) => Promise<Completion>;
  readonly finish: (held: HeldClaim, completion: Completion) => void;
  readonly onError: (error: unknown) => void;
}

export interface SlotQueues {
  readonly add: (held: HeldClaim) => void;
  /** Returns all of the claims. There will be no attempts for them. */
  readonly giveBack: () => void;
  /** Attempts under way. */
  readonly sending: () => number;
}

interface Slot {
  readonly name: string;
  queue: HeldClaim[];
  /** True if there are claims to send and the slot waits for its turn. */
  isInTurn: boolean;
  sending: number;
  opened: OpenedSlot | undefined;
  /** The version that the rows had when it was opened. */
  version: string | undefined;
}

export function released({ claim: { lane, ref } }: HeldClaim): Completion {
  return { lane, ref, outcome: 'released', reason: 'released' };
}

/**
 * Contains a queue of claims for each subscription. The number of concurrent attempts is limited by the cap of the
 * subscription. Claims are sent in order. If a claim is too old when it is its turn, it is only returned at this time.
 * If it were claimed again earlier, it would not be sent any sooner. If many attempts are to be started, subscriptions
 * take turns after each attempt.
 */
export function createSlotQueues(deps: SlotQueuesDeps): SlotQueues {
  const slots = new Map<string, Slot>();
  const toOpen = new Set<Slot>();
  const inTurn: Slot[] = [];
  let opening = false;
  let sending = 0;
  let started = 0;

  function giveBackAll(slot: Slot): void {
    for (const held of slot.queue.splice(0)) deps.finish(held, released(held));
  }

  async function openAsked(): Promise<void> {
    opening = true;
    while (toOpen.size > 0) {
      const asked = [...toOpen];
      toOpen.clear();
      const version = deps.version();
      try {
        const opened = await deps.openSlots(asked.map(({ name }) => name));
        for (const [i, slot] of asked.entries()) {
          slot.opened = opened[i];
          slot.version = version;
          if (slot.opened === undefined) void delay(RETRY_MS).then(() => giveBackUnopened(slot));
          else work(slot);
        }
      } catch (error) {
        deps.onError(error);
        await delay(RETRY_MS);
        for (const slot of asked) toOpen.add(slot);
      }
    }
    opening = false;
  }

  function giveBackUnopened(slot: Slot): void {
    slot.version = undefined;
    giveBackAll(slot);
  }

  function askToOpen(slot: Slot): void {
    toOpen.add(slot);
    if (!opening) void openAsked();
  }

  /** Starts at most `most` attempts for a slot. If there are more, it waits for its next turn. */
  function work(slot: Slot, most = STARTS_AT_ONCE): void {
    if (slot.isInTurn) return;
    const upTo = Math.min(STARTS_AT_ONCE, started + most);
    while (slot.queue.length > 0) {
      const { opened } = slot;
      if (slot.version !== deps.version()) return askToOpen(slot);
      if (opened === undefined) return;
      if (deps.wallMs() >= opened.subscription.validUntilMs) return askToOpen(slot);
      if (opened.row.send !== 'open') return giveBackAll(slot);
      if (slot.sending >= opened.row.cap) return;
      if (started >= upTo) {
        slot.isInTurn = true;
        inTurn.push(slot);
        return;
      }
      const held = slot.queue.shift() as HeldClaim;
      if (deps.isFresh(held)) start(slot, opened, held);
      else deps.finish(held, released(held));
    }
    if (slot.sending === 0 && slots.size > KEPT_AT_MOST) slots.delete(slot.name);
  }

  /**
   * A slot that has more claims is added again behind all others, so that each of them starts one attempt at a time.
   */
  function takeTurns(): void {
    started = 0;
    while (started < STARTS_AT_ONCE) {
      const slot = inTurn.shift();
      if (slot === undefined) break;
      slot.isInTurn = false;
      work(slot, 1);
    }
  }

  function start(slot: Slot, opened: OpenedSlot, held: HeldClaim): void {
    if (started++ === 0) setImmediate(takeTurns);
    slot.sending++;
    sending++;
    void deps.send(opened, held).then(completion => {
      slot.sending--;
      sending--;
      deps.finish(held, completion);
      work(slot);
    });
  }

  return {
    add(held) {
      const name = held.claim.slot;
      let slot = slots.get(name);
      if (slot === undefined) {
        slot = { name, queue: [], isInTurn: false, sending: 0, opened: undefined, version: undefined };
        slots.set(name, slot);
      }
      slot.queue.push(held);
      work(slot);
    },
    giveBack() {
      for (const slot of slots.values()) giveBackAll(slot);
    },
    sending: () => sending,
  };
}
