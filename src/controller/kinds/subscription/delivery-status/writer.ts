import type { DeliveryStatus } from '../../../../api/delivery-status.ts';
import type { Clock } from '../../../../time/clock.ts';

/** Five turns a second for the whole installation. */
const TURN_EVERY_MS = 200;
/** Minimum time between two turns of a Subscription, ms. */
const SAME_EVERY_MS = 10_000;

/** Identifies a Subscription. One that was deleted and created again differs. */
export interface Target {
  /** `namespace/name` */
  readonly key: string;
  readonly uid: string;
}

interface Entry {
  readonly uid: string;
  readonly status: DeliveryStatus;
}

/** Writes the state of deliveries to a few statuses a second, oldest change first, with the state at its turn. */
export interface DeliveryWriter {
  /** Requests a turn. A later offer replaces the status of an earlier one and keeps its place. */
  readonly offer: (target: Target, status: DeliveryStatus) => void;
  /** Cancels the turn: the status is correct again. */
  readonly withdraw: (key: string) => void;
  readonly isWaiting: (key: string) => boolean;
  /** Returns the status of the Subscription's last turn; undefined: it had none in this term. */
  readonly shownOf: (target: Target) => DeliveryStatus | undefined;
  readonly waiting: () => number;
  readonly begin: () => void;
  readonly end: () => void;
  /** Forgets Subscriptions that are gone. */
  readonly prune: (exists: (key: string) => boolean) => void;
}

/** Creates a writer. @param write writes the Subscription's status, with retries */
export function createDeliveryWriter(deps: {
  readonly write: (key: string) => void;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
}): DeliveryWriter {
  const { clock } = deps;
  /** In the order of the changes, with at most one entry for each Subscription. */
  const queue = new Map<string, Entry>();
  const shown = new Map<string, Entry & { readonly atMs: number }>();
  let lastTurnMs = Number.NEGATIVE_INFINITY;
  let working = false;
  let timer: { readonly atMs: number; readonly cancel: () => void } | undefined;

  function readyAtMs(key: string): number {
    return (shown.get(key)?.atMs ?? Number.NEGATIVE_INFINITY) + SAME_EVERY_MS;
  }

  /** Schedules a turn for an entry that is ready at `readyMs`. */
  function arm(readyMs: number): void {
    const atMs = Math.max(readyMs, lastTurnMs + TURN_EVERY_MS);
    if (timer !== undefined && timer.atMs <= atMs) return;
    timer?.cancel();
    timer = { atMs, cancel: clock.setTimer(turn, Math.max(0, atMs - clock.nowMs())) };
  }

  function turn(): void {
    timer = undefined;
    const nowMs = clock.nowMs();
    let had = false;
    for (const [key, entry] of queue) {
      const readyMs = readyAtMs(key);
      if (!had && readyMs <= nowMs) {
        had = true;
        queue.delete(key);
        shown.set(key, { ...entry, atMs: nowMs });
        lastTurnMs = nowMs;
        deps.write(key);
        continue;
      }
      arm(readyMs);
      // No later entry is ready earlier than this one.
      if (had && readyMs <= nowMs) return;
    }
  }

  function end(): void {
    working = false;
    timer?.cancel();
    timer = undefined;
    queue.clear();
    shown.clear();
  }

  return {
    offer({ key, uid }, status) {
      if (!working) return;
      queue.set(key, { uid, status });
      arm(readyAtMs(key));
    },
    withdraw: key => queue.delete(key),
    isWaiting: key => queue.has(key),
    shownOf({ key, uid }) {
      const entry = shown.get(key);
      return entry?.uid === uid ? entry.status : undefined;
    },
    waiting: () => queue.size,
    begin() {
      end();
      working = true;
    },
    end,
    prune(exists) {
      for (const key of queue.keys()) if (!exists(key)) queue.delete(key);
      for (const key of shown.keys()) if (!exists(key)) shown.delete(key);
    },
  };
}
