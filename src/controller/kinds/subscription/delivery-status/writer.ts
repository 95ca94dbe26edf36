import type { DeliveryStatus } from '../../../../api/delivery-status.ts';
import type { Clock } from '../../../../time/clock.ts';
import { tenantOfKey } from '../../../engine/turns.ts';

/** Limits status writes to five per second across the whole installation. */
const TURN_EVERY_MS = 200;
/** The minimum time between two writes to the status of the same Subscription, in milliseconds. */
const SAME_EVERY_MS = 10_000;

/** Used to identify a Subscription. A Subscription that is deleted and recreated has a different target. */
export interface Target {
  /** The key, in the format `namespace/name`. */
  readonly key: string;
  readonly uid: string;
}

interface Entry {
  readonly uid: string;
  readonly status: DeliveryStatus;
}

/**
 * Writes the delivery state to the statuses of Subscriptions. The rate is limited to a few writes per second. The
 * namespaces take turns so that one with thousands of changes does not delay the others. Within a namespace, the oldest
 * change is written first. Each write uses the latest state.
 */
export interface DeliveryWriter {
  /** Adds a Subscription to the queue. If already queued, it gets the new state but keeps its position. */
  readonly offer: (target: Target, status: DeliveryStatus) => void;
  /** Removes a Subscription from the queue if its status is already correct. */
  readonly withdraw: (key: string) => void;
  readonly isWaiting: (key: string) => boolean;
  /**
   * Returns the most recently written state of the Subscription. Returns undefined if no state has been written in this
   * term.
   */
  readonly shownOf: (target: Target) => DeliveryStatus | undefined;
  /** Drops the state of a Subscription whose status is written by the caller. */
  readonly forget: (key: string) => void;
  readonly waiting: () => number;
  readonly begin: () => void;
  readonly end: () => void;
  /** Drops the state of all Subscriptions which no longer exist. */
  readonly prune: (exists: (key: string) => boolean) => void;
}

/** A queue with at most one entry per Subscription, whose namespaces take turns. */
function createTurnQueue() {
  /** The entries of each namespace in the order of the changes. The namespaces are in the order of their turns. */
  const namespaces = new Map<string, Map<string, Entry>>();

  function remove(key: string): void {
    const namespace = tenantOfKey(key);
    const own = namespaces.get(namespace);
    own?.delete(key);
    if (own?.size === 0) namespaces.delete(namespace);
  }

  return {
    /** Adds an entry, or replaces it without changing its position. */
    set(key: string, entry: Entry): void {
      const namespace = tenantOfKey(key);
      const own = namespaces.get(namespace) ?? new Map<string, Entry>();
      own.set(key, entry);
      namespaces.set(namespace, own);
    },
    remove,
    /** Removes an entry. The next turn of its namespace is after those of all others. */
    take(key: string): void {
      remove(key);
      const namespace = tenantOfKey(key);
      const own = namespaces.get(namespace);
      namespaces.delete(namespace);
      if (own !== undefined) namespaces.set(namespace, own);
    },
    has: (key: string): boolean => namespaces.get(tenantOfKey(key))?.has(key) === true,
    *entries(): Iterable<[string, Entry]> {
      for (const own of namespaces.values()) yield* own;
    },
    size: (): number => [...namespaces.values()].reduce((sum, own) => sum + own.size, 0),
    clear: (): void => namespaces.clear(),
  };
}

/** Creates a delivery writer. @param write writes a Subscription's status, retrying any failures */
export function createDeliveryWriter(deps: {
  readonly write: (key: string) => void;
  readonly clock: Pick<Clock, 'nowMs' | 'setTimer'>;
}): DeliveryWriter {
  const { clock } = deps;
  const queue = createTurnQueue();
  const shown = new Map<string, Entry & { readonly atMs: number }>();
  let lastTurnMs = Number.NEGATIVE_INFINITY;
  let working = false;
  let timer: { readonly atMs: number; readonly cancel: () => void } | undefined;

  function readyAtMs(key: string): number {
    return (shown.get(key)?.atMs ?? Number.NEGATIVE_INFINITY) + SAME_EVERY_MS;
  }

  /** Sets the timer for an entry that may be written at `readyMs`. */
  function arm(readyMs: number): void {
    const atMs = Math.max(readyMs, lastTurnMs + TURN_EVERY_MS);
    if (timer !== undefined && timer.atMs <= atMs) return;
    timer?.cancel();
    timer = { atMs, cancel: clock.setTimer(turn, Math.max(0, atMs - clock.nowMs())) };
  }

  function turn(): void {
    timer = undefined;
    const nowMs = clock.nowMs();
    for (const [key, entry] of queue.entries()) {
      const readyMs = readyAtMs(key);
      if (readyMs > nowMs) {
        arm(readyMs);
        continue;
      }
      queue.take(key);
      shown.set(key, { ...entry, atMs: nowMs });
      lastTurnMs = nowMs;
      deps.write(key);
      if (queue.size() > 0) arm(nowMs);
      return;
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
    withdraw: queue.remove,
    isWaiting: queue.has,
    shownOf({ key, uid }) {
      const entry = shown.get(key);
      return entry?.uid === uid ? entry.status : undefined;
    },
    forget(key) {
      queue.remove(key);
      shown.delete(key);
    },
    waiting: queue.size,
    begin() {
      end();
      working = true;
    },
    end,
    prune(exists) {
      for (const [key] of queue.entries()) if (!exists(key)) queue.remove(key);
      for (const key of shown.keys()) if (!exists(key)) shown.delete(key);
    },
  };
}
