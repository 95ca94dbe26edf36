import type { Clock } from '../../time/clock.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';

/** The priority of a key that is waiting. Closing has priority over opening, and user changes over the audit. */
export type Order = 'deletion' | 'change' | 'background';

const ORDERS: readonly Order[] = ['deletion', 'change', 'background'];

/** Returns the order with the highest priority. */
export function firstOf(order: Order, other: Order | undefined): Order {
  return other === undefined || ORDERS.indexOf(order) < ORDERS.indexOf(other) ? order : other;
}

/**
 * The order that is served first in each of eight consecutive turns. Most of the turns are used for deletions. However,
 * they must not delay the changes in other workspaces, for example if 20,000 objects are deleted in one workspace. The
 * audit must always make progress.
 */
const FIRST_IN_TURN: readonly Order[] = [
  'deletion',
  'deletion',
  'deletion',
  'change',
  'deletion',
  'deletion',
  'deletion',
  'background',
];

/**
 * Returns the tenant that a key belongs to. For `namespace/name`, this is the namespace. A key without a namespace (for
 * example, an Account name) is its own tenant.
 */
export function tenantOfKey(key: string): string {
  const slash = key.indexOf('/');
  return slash === -1 ? key : key.slice(0, slash);
}

/**
 * Creates a FIFO queue from which keys can be removed. This relies on Set iterators also visiting elements added during
 * the iteration.
 */
function createFifo() {
  const keys = new Set<string>();
  let cursor = keys.values();
  return {
    add: (key: string) => keys.add(key),
    delete: (key: string) => keys.delete(key),
    size: () => keys.size,
    take: (): string | undefined => {
      if (keys.size === 0) return undefined;
      let next = cursor.next();
      if (next.done) {
        cursor = keys.values();
        next = cursor.next();
      }
      const key = next.value as string;
      keys.delete(key);
      return key;
    },
  };
}

/**
 * Creates the keys that are waiting in a single order. The tenants take turns. The keys of each tenant are processed
 * first in, first out.
 */
function createRotation() {
  const tenants = createFifo();
  const keysOf = new Map<string, ReturnType<typeof createFifo>>();

  function drop(tenant: string): void {
    tenants.delete(tenant);
    keysOf.delete(tenant);
  }

  return {
    add(key: string): void {
      const tenant = tenantOfKey(key);
      const keys = keysOf.get(tenant) ?? createFifo();
      keysOf.set(tenant, keys);
      tenants.add(tenant);
      keys.add(key);
    },
    delete(key: string): void {
      const tenant = tenantOfKey(key);
      const keys = keysOf.get(tenant);
      keys?.delete(key);
      if (keys?.size() === 0) drop(tenant);
    },
    take(): string | undefined {
      const tenant = tenants.take();
      if (tenant === undefined) return undefined;
      const keys = keysOf.get(tenant);
      const key = keys?.take();
      if (keys === undefined || keys.size() === 0) drop(tenant);
      else tenants.add(tenant);
      return key;
    },
  };
}

export type Turns = ReturnType<typeof createTurns>;

/**
 * Creates the keys that are waiting in a work queue. There are no duplicates. Since the tenants take turns within each
 * order, the waiting time of a key depends on the number of active tenants, and not on their number of keys.
 */
export function createTurns() {
  let turn = 0;
  let waiting = createRotations();
  /** The order in which each key is waiting. */
  const orders = new Map<string, Order>();

  function createRotations() {
    return { deletion: createRotation(), change: createRotation(), background: createRotation() };
  }

  return {
    has: (key: string) => orders.has(key),
    size: () => orders.size,
    /**
     * Adds a key. If it is already waiting in a later order, it is moved forward. Returns true if the key was not
     * waiting before.
     */
    add(key: string, order: Order): boolean {
      const current = orders.get(key);
      if (current !== undefined && firstOf(current, order) === current) return false;
      if (current !== undefined) waiting[current].delete(key);
      waiting[order].add(key);
      orders.set(key, order);
      return current === undefined;
    },
    take(): string | undefined {
      const first = FIRST_IN_TURN[turn++ % FIRST_IN_TURN.length] as Order;
      for (const order of [first, ...ORDERS]) {
        const key = waiting[order].take();
        if (key === undefined) continue;
        orders.delete(key);
        return key;
      }
      return undefined;
    },
    clear(): void {
      waiting = createRotations();
      orders.clear();
    },
  };
}

/** A key whose last processing took at least this time is slow. In milliseconds. */
const SLOW_MS = 1_000;
/** The time after which a key that was not processed again is no longer considered slow, in milliseconds. */
const SLOW_FOR_MS = 60_000;
const MOST_SLOW_KEYS = 100_000;

export type WaitingKeys = ReturnType<typeof createWaitingKeys>;

/**
 * Creates the keys that are waiting, and remembers which of them are slow, for example because the part of Redis that
 * they use does not respond, or because the routes of a large tenant are being compiled. A quarter of the workers, and
 * at least one if there are several, is kept free of slow keys. If slow keys could use all workers, all other keys
 * would have to wait for them.
 */
export function createWaitingKeys(options: { readonly clock: Pick<Clock, 'nowMs'>; readonly workers: number }) {
  const { clock, workers } = options;
  const most = Math.max(1, Math.floor(workers * 0.75));
  const usual = createTurns();
  const slow = createTurns();
  const slowKeys = createExpiringMap<true>({ ttlMs: SLOW_FOR_MS, entries: MOST_SLOW_KEYS, nowMs: clock.nowMs });
  /** The time at which the processing of each key began, and true if the key is one of those that are limited. */
  const running = new Map<string, { readonly beganMs: number; readonly isSlow: boolean }>();
  let slowRunning = 0;
  let turn = 0;

  function turnsOf(key: string): Turns {
    if (slow.has(key)) return slow;
    return usual.has(key) || slowKeys.get(key) === undefined ? usual : slow;
  }

  return {
    has: (key: string) => usual.has(key) || slow.has(key),
    size: () => usual.size() + slow.size(),
    add: (key: string, order: Order): boolean => turnsOf(key).add(key, order),
    take(): string | undefined {
      const first = turn++ % 2 === 0 ? usual : slow;
      for (const turns of slowRunning < most ? [first, usual, slow] : [usual]) {
        const key = turns.take();
        if (key === undefined) continue;
        const isSlow = turns === slow;
        if (isSlow) slowRunning++;
        running.set(key, { beganMs: clock.nowMs(), isSlow });
        return key;
      }
      return undefined;
    },
    /** Must be called for each key that was taken, when it has been processed. */
    done(key: string): void {
      const run = running.get(key);
      if (run === undefined) return;
      running.delete(key);
      if (run.isSlow) slowRunning--;
      if (clock.nowMs() - run.beganMs >= SLOW_MS) slowKeys.set(key, true);
      else slowKeys.delete(key);
    },
    clear(): void {
      usual.clear();
      slow.clear();
    },
  };
}
