import { randomUUID } from 'node:crypto';
import { changedDelivery } from '../../redis/alarm.ts';
import type { HintIndex } from '../../redis/hints.ts';
import { type InboxStore, parseInboxMember } from '../../redis/inbox-store.ts';
import type { TrafficStore } from '../../redis/traffic-store.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import { systemClock } from '../../time/clock.ts';
import { createDueLoop } from '../due-loop.ts';
import { createTrafficFolds } from '../traffic-folds.ts';
import { createDeliveryAlarm } from './delivery-alarm.ts';
import { createDispatcherMetrics } from './dispatcher-metrics.ts';
import type { EndpointClient } from './endpoint-client.ts';
import { createEventCache } from './event-cache.ts';
import type { OpenSubscription, SubscriptionKeys } from './subscription.ts';
import { createWorker, type Room, type Worker } from './worker.ts';

export interface DispatcherOptions {
  readonly inboxes: InboxStore;
  readonly hints: HintIndex;
  /** Adds integration counts to the series of the respective producers. */
  readonly traffic: TrafficStore;
  readonly client: EndpointClient;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  readonly alarm: (slot: string) => void;
  readonly nowMs: () => number;
  /** Wall clock of this machine. Defaults to `Date.now`. */
  readonly wallMs?: () => number;
  readonly log: Logger;
  readonly registry: Registry;
  readonly tracing?: Tracing | undefined;
  /** Maximum number of attempts in flight in this process. Defaults to 4,096. */
  readonly room?: number;
  /** Maximum size of the event cache in bytes, shared by all subscriptions. Defaults to 32 MiB. */
  readonly cacheBytes?: number;
}

export interface Dispatcher {
  readonly start: () => void;
  readonly onReconnect: () => void;
  /** Stops claiming events, then waits for any attempts in flight. */
  readonly stop: () => Promise<void>;
}

/**
 * How long this process owns a hint. After a crash, other processes can take over the subscription once this time has
 * passed.
 */
const HINT_LEASE_MS = 10_000;

/** Creates the dispatcher role, which uses hints to find due subscriptions and starts a worker for each of them. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const size = options.room ?? 4_096;
  const room: Room = { free: size, waiting: new Set() };
  const metrics = createDispatcherMetrics(options.registry, () => size - room.free, options.nowMs);
  const aborter = new AbortController();
  const workers = new Map<string, Worker>();
  const process = randomUUID().slice(0, 8);
  let turn = 0;
  const monotonicMs = systemClock.nowMs;
  const deliveryAlarm = createDeliveryAlarm({
    raise: member => options.alarm(changedDelivery(member)),
    monotonicMs,
    setTimer: systemClock.setTimer,
  });
  const deps = {
    inboxes: options.inboxes,
    readEvents: createEventCache(options.inboxes, options.cacheBytes ?? 32 * 1024 * 1024),
    keys: options.keys,
    version: options.version,
    opened: new Map<string, OpenSubscription>(),
    room,
    nextToken: () => `${process}${(turn++).toString(36)}`,
    alarm: options.alarm,
    onNews: deliveryAlarm.note,
    log: options.log,
    signal: aborter.signal,
    attempt: options.client.attempt,
    nowMs: options.nowMs,
    wallMs: options.wallMs ?? Date.now,
    monotonicMs,
    random: Math.random,
    tracing: options.tracing,
    onAttempt: metrics.attempted,
    onGivenUp: metrics.gaveUp,
  };
  const folds = createTrafficFolds({ store: options.traffic, nowMs: options.nowMs, log: options.log });
  const loop = createDueLoop({
    hints: options.hints,
    nowMs: options.nowMs,
    log: options.log,
    concurrency: 10_000,
    leaseMs: HINT_LEASE_MS,
    token: randomUUID,
    onFailure: metrics.failed,
    poke: member => workers.get(member)?.poke(),
    run: async member => {
      const { integration } = parseInboxMember(member);
      const worker = createWorker({ ...deps, onExchange: () => folds.touch({ integration }) }, member);
      workers.set(member, worker);
      let next: number | null;
      try {
        next = await worker.run();
      } finally {
        workers.delete(member);
      }
      return folds.settle({ integration }, next, member);
    },
  });
  return {
    start: () => loop.start(),
    onReconnect: () => loop.lookEverywhere(),
    stop: async () => {
      aborter.abort();
      await loop.stop();
      deliveryAlarm.flush();
    },
  };
}
