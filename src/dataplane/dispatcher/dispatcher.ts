import { randomUUID } from 'node:crypto';
import type { HintIndex } from '../../redis/hints.ts';
import type { Completion, InboxStore } from '../../redis/inbox-store.ts';
import type { Logger } from '../../telemetry/log.ts';
import { Counter, Gauge, Histogram, type Registry } from '../../telemetry/metrics.ts';
import { createTally } from '../../telemetry/tally.ts';
import { createDueLoop } from '../due-loop.ts';
import type { DeliverDeps } from './deliver.ts';
import type { AttemptResult, EndpointClient } from './endpoint-client.ts';
import { createEventCache } from './event-cache.ts';
import type { OpenSubscription, SubscriptionKeys } from './subscription.ts';
import { createWorker, type Room, type Worker } from './worker.ts';

export interface DispatcherOptions {
  readonly inboxes: InboxStore;
  readonly hints: HintIndex;
  readonly client: EndpointClient;
  readonly keys: SubscriptionKeys;
  readonly version: string;
  readonly alarm: (slot: string) => void;
  readonly nowMs: () => number;
  readonly log: Logger;
  readonly registry: Registry;
  /** Attempts in flight at once in this process; default 4,096. */
  readonly room?: number;
  /** Bodies kept for other subscriptions of the same events, bytes; default 32 MiB. */
  readonly cacheBytes?: number;
}

export interface Dispatcher {
  readonly start: () => void;
  readonly onReconnect: () => void;
  /** Claims nothing new and waits for what is in flight. */
  readonly stop: () => Promise<void>;
}

/** How long a picked hint is this process's: others take the subscription over then, if it died. */
const HINT_LEASE_MS = 10_000;

function createDispatcherMetrics(registry: Registry, room: Room, size: number) {
  const registers = [registry];
  new Gauge({
    name: 'sluice_dispatcher_attempts_in_flight',
    help: 'Attempts under way in this process.',
    registers,
    collect() {
      this.set(size - room.free);
    },
  });
  const attempts = createTally<`${AttemptResult['outcome']} ${AttemptResult['reason']}`>();
  const ended = createTally<Completion['outcome']>();
  new Counter({
    name: 'sluice_dispatcher_attempts_total',
    help: 'HTTP attempts by outcome (delivered, failed, disabled) and reason.',
    labelNames: ['outcome', 'reason'] as const,
    registers,
    collect() {
      attempts.take((key, count) => {
        const [outcome, reason] = key.split(' ') as [string, string];
        this.inc({ outcome, reason }, count);
      });
    },
  });
  new Counter({
    name: 'sluice_dispatcher_events_total',
    help: 'What attempts led to: delivered, failed (tried again), dead.',
    labelNames: ['result'] as const,
    registers,
    collect() {
      ended.take((result, count) => this.inc({ result }, count));
    },
  });
  return {
    attempts,
    ended,
    latency: new Histogram({
      name: 'sluice_dispatcher_attempt_duration_seconds',
      help: 'Time of an attempt, from connecting to the end of the answer.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
  };
}

/** The dispatcher role: finds due subscriptions by their hints and works each by a worker of its own. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const size = options.room ?? 4_096;
  const room: Room = { free: size, waiting: new Set() };
  const metrics = createDispatcherMetrics(options.registry, room, size);
  const aborter = new AbortController();
  const workers = new Map<string, Worker>();
  const process = randomUUID().slice(0, 8);
  let turn = 0;
  const deps = {
    inboxes: options.inboxes,
    readEvents: createEventCache(options.inboxes, options.cacheBytes ?? 32 * 1024 * 1024),
    keys: options.keys,
    version: options.version,
    opened: new Map<string, OpenSubscription>(),
    room,
    nextToken: () => `${process}${(turn++).toString(36)}`,
    alarm: options.alarm,
    log: options.log,
    signal: aborter.signal,
    attempt: options.client.attempt,
    nowMs: options.nowMs,
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
    random: Math.random,
    onAttempt: ((result, completion) => {
      metrics.attempts.add(`${result.outcome} ${result.reason}`);
      metrics.ended.add(completion.outcome);
      metrics.latency.observe(result.latencyMs / 1_000);
    }) satisfies DeliverDeps['onAttempt'],
  };
  const loop = createDueLoop({
    hints: options.hints,
    nowMs: options.nowMs,
    log: options.log,
    concurrency: 10_000,
    leaseMs: HINT_LEASE_MS,
    token: randomUUID,
    poke: member => workers.get(member)?.poke(),
    run: async member => {
      const worker = createWorker(deps, member);
      workers.set(member, worker);
      try {
        return await worker.run();
      } finally {
        workers.delete(member);
      }
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
