import { randomUUID } from 'node:crypto';
import type { HintIndex } from '../../redis/hints.ts';
import type { InboxStore } from '../../redis/inbox-store.ts';
import type { LedgerStore } from '../../redis/ledger-store.ts';
import { OWNER_LEASE_MS, type QueueStore } from '../../redis/queue-store.ts';
import type { TrafficStore } from '../../redis/traffic-store.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import { createDueLoop } from '../due-loop.ts';
import { createTrafficFolds } from '../traffic-folds.ts';
import type { RoutedBatch } from './batch.ts';
import { routeQueue } from './queue.ts';
import type { Hold } from './reservation.ts';
import { createRouterMetrics } from './router-metrics.ts';
import type { TraceRouting } from './routing-spans.ts';

export interface RouterOptions {
  readonly queues: QueueStore;
  readonly inboxes: Pick<InboxStore, 'route' | 'expire'>;
  readonly ledger: Pick<LedgerStore, 'reserve' | 'fold' | 'survey'>;
  /** Brings what queues count into their producers' series. */
  readonly traffic: TrafficStore;
  /** Hints of queues, which routers pick. */
  readonly queueHints: HintIndex;
  /** Hints of subscriptions, which routers lower for the dispatchers. */
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  readonly alarm: (slot: string) => void;
  readonly nowMs: () => number;
  readonly log: Logger;
  readonly registry: Registry;
  /** Undefined: routing is not traced. */
  readonly trace?: TraceRouting | undefined;
  /** Queues routed at once by this process; default 64. */
  readonly concurrency?: number;
}

export interface Router {
  readonly start: () => void;
  /** To be called when the connection to Redis was lost: in-flight batches end by themselves, due queues are looked for. */
  readonly onReconnect: () => void;
  readonly stop: () => Promise<void>;
}

/** Label of what a batch waits for. */
const WAIT_CAUSE: Record<Hold, string> = { SHORT: 'spent', BUSY: 'reserved', CLOSED: 'unknown' };

/** The router role: owns queues by picking their hints, one owner a queue, any number of queues and routers. */
export function createRouter(options: RouterOptions): Router {
  const metrics = createRouterMetrics(options.registry);
  const aborter = new AbortController();
  const trimmed = new Map<string, number>();
  const owner = randomUUID();
  function onBatch(batch: RoutedBatch, entries: number, oldestMs?: number): void {
    metrics.batches.inc();
    metrics.events.inc(entries);
    if (oldestMs !== undefined) metrics.lag.observe(Math.max(0, options.nowMs() - oldestMs) / 1_000);
    metrics.routed.inc(batch.routed);
    metrics.tokens.inc(batch.tokens);
    if (entries > 0 && batch.keyless > 0) metrics.notRouted.inc({ reason: 'missing_group_key' }, batch.keyless);
    for (const reasons of batch.refused.values())
      for (const reason of reasons.values()) metrics.notRouted.inc({ reason });
    if (batch.paused.length > 0) metrics.held.inc({ cause: 'paused' }, batch.paused.length);
    if (batch.unreachable.length > 0) metrics.held.inc({ cause: 'unreachable' }, batch.unreachable.length);
  }
  const deps = {
    queues: options.queues,
    inboxes: options.inboxes,
    ledger: options.ledger,
    lower: options.inboxHints.lower,
    nowMs: options.nowMs,
    alarm: options.alarm,
    signal: aborter.signal,
    trace: options.trace,
    owner,
    onBatch,
    onHeld: (cause: Hold) => metrics.waits.inc({ cause: WAIT_CAUSE[cause] }),
    onExpired: (neverRouted: number) => metrics.notRouted.inc({ reason: 'expired' }, neverRouted),
  };
  const folds = createTrafficFolds({ store: options.traffic, nowMs: options.nowMs, log: options.log });
  const loop = createDueLoop({
    hints: options.queueHints,
    nowMs: options.nowMs,
    log: options.log,
    concurrency: options.concurrency ?? 64,
    leaseMs: OWNER_LEASE_MS,
    token: randomUUID,
    onFailure: () => metrics.failures.inc(),
    run: async member => {
      const colon = member.indexOf(':');
      const queue = { tenant: member.slice(0, colon), queue: member.slice(colon + 1) };
      const counting: typeof onBatch = (...batch) => {
        onBatch(...batch);
        folds.touch(queue);
      };
      return folds.settle(queue, await routeQueue({ ...deps, onBatch: counting }, queue, trimmed));
    },
  });
  return {
    start: () => loop.start(),
    onReconnect: () => loop.lookEverywhere(),
    stop: async () => {
      aborter.abort();
      await loop.stop();
    },
  };
}
