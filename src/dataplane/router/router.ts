import { randomUUID } from 'node:crypto';
import type { HintIndex } from '../../redis/hints.ts';
import type { InboxStore } from '../../redis/inbox-store.ts';
import type { LedgerStore } from '../../redis/ledger-store.ts';
import { OWNER_LEASE_MS, type QueueStore } from '../../redis/queue-store.ts';
import type { Logger } from '../../telemetry/log.ts';
import { Counter, type Registry } from '../../telemetry/metrics.ts';
import { createDueLoop } from '../due-loop.ts';
import type { RoutedBatch } from './batch.ts';
import { routeQueue } from './queue.ts';
import type { Hold } from './reservation.ts';

export interface RouterOptions {
  readonly queues: QueueStore;
  readonly inboxes: Pick<InboxStore, 'route' | 'expire'>;
  readonly ledger: Pick<LedgerStore, 'reserve' | 'fold' | 'survey'>;
  /** Hints of queues, which routers pick. */
  readonly queueHints: HintIndex;
  /** Hints of subscriptions, which routers lower for the dispatchers. */
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  readonly alarm: (slot: string) => void;
  readonly nowMs: () => number;
  readonly log: Logger;
  readonly registry: Registry;
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

function createRouterMetrics(registry: Registry) {
  const registers = [registry];
  return {
    batches: new Counter({
      name: 'sluice_router_batches_total',
      help: 'Batches of events that were routed.',
      registers,
    }),
    events: new Counter({
      name: 'sluice_router_events_total',
      help: 'Events that the main pass went through.',
      registers,
    }),
    routed: new Counter({ name: 'sluice_router_routed_total', help: 'References appended to inboxes.', registers }),
    notRouted: new Counter({
      name: 'sluice_router_not_routed_total',
      help: 'Subscribed integrations that did not get an event, by reason; missing_group_key counts events.',
      labelNames: ['reason'] as const,
      registers,
    }),
    held: new Counter({
      name: 'sluice_router_held_total',
      help: 'Batches that a subscription could not take its part of: it stays behind and is caught up.',
      labelNames: ['cause'] as const,
      registers,
    }),
    tokens: new Counter({
      name: 'sluice_router_tokens_total',
      help: 'Tokens of the references appended to inboxes.',
      registers,
    }),
    waits: new Counter({
      name: 'sluice_router_token_waits_total',
      help: 'Batches that waited for tokens, by cause: spent, reserved by other queues, or account unknown.',
      labelNames: ['cause'] as const,
      registers,
    }),
  };
}

/** The router role: owns queues by picking their hints, one owner a queue, any number of queues and routers. */
export function createRouter(options: RouterOptions): Router {
  const metrics = createRouterMetrics(options.registry);
  const aborter = new AbortController();
  const trimmed = new Map<string, number>();
  const owner = randomUUID();
  function onBatch(batch: RoutedBatch, entries: number): void {
    metrics.batches.inc();
    metrics.events.inc(entries);
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
    owner,
    onBatch,
    onHeld: (cause: Hold) => metrics.waits.inc({ cause: WAIT_CAUSE[cause] }),
    onExpired: (neverRouted: number) => metrics.notRouted.inc({ reason: 'expired' }, neverRouted),
  };
  const loop = createDueLoop({
    hints: options.queueHints,
    nowMs: options.nowMs,
    log: options.log,
    concurrency: options.concurrency ?? 64,
    leaseMs: OWNER_LEASE_MS,
    token: randomUUID,
    run: member => {
      const colon = member.indexOf(':');
      return routeQueue(deps, { tenant: member.slice(0, colon), queue: member.slice(colon + 1) }, trimmed);
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
