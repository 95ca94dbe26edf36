import { SILENT_MS } from '../../time/bounded-reads.ts';
import { type Clock, systemClock } from '../../time/clock.ts';
import { DeadlineError } from '../../time/deadline.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import type { IngressLimits } from './limits.ts';
import {
  bytesOf,
  type IngestCall,
  oldestMs,
  type QueueBatches,
  release,
  takeBack,
  takeBatch,
  takeLate,
  type Waiting,
} from './queue-batches.ts';
import type { IngestAnswer, IngestItem, IngressStore, QueueConfig, Stored } from './store.ts';

/**
 * The reason why an event is not accepted. Either the queue of the event holds too many bytes (overloaded), or a call
 * of the queue has not ended in time (unavailable).
 */
export type SubmitRefusal = 'overloaded' | 'unavailable';

/** Batches combines events of the same queue in order to make fewer ingest calls. */
export interface Batches {
  /**
   * Adds an event to the next batch. `settled` will be called later, exactly once, with the result, at the latest after
   * `ingestTimeoutMs`. If the event is not accepted, this returns the reason.
   */
  readonly submit: (
    tenant: string,
    queue: string,
    config: QueueConfig,
    item: IngestItem,
    settled: (answer: IngestAnswer) => void,
  ) => SubmitRefusal | undefined;
  /** Returns true if an event of this queue would now be refused as unavailable. */
  readonly isSilent: (tenant: string, queue: string) => boolean;
  /** Resolves when there are no events waiting and no calls in flight. */
  readonly idle: () => Promise<void>;
}

interface BatchOptions {
  readonly ingest: IngressStore['ingest'];
  readonly limits: IngressLimits;
  readonly onFailure: (operation: string, error: unknown) => void;
  readonly clock?: Clock;
}

const UNAVAILABLE: IngestAnswer = { answer: 'UNAVAILABLE' };

/**
 * Creates the batches for all queues. For each queue, there is at most one call in flight. If more events arrive in the
 * meantime, they are included in the next call. At the start of a busy period, the first call is deferred to the end of
 * the current event loop turn, so requests which were read together can also be stored together, without needing a
 * timer. If the store has left some events for later, they are the first ones in the next call. Different queues don't
 * affect each other.
 *
 * If a call does not end in time, the queue is silent. All of its events get a response immediately because the result
 * is unknown. Until a call ends in time, all but one new event at a time are refused.
 */
export function createBatches(options: BatchOptions): Batches {
  const { limits, clock = systemClock } = options;
  const busy = new Map<string, QueueBatches>();
  const silent = createExpiringMap<true>({ ttlMs: SILENT_MS, entries: limits.cacheEntries, nowMs: clock.nowMs });
  let whenIdle: (() => void)[] = [];

  const send = createSend({
    ...options,
    clock,
    onAnswer: of => silent.delete(of.key),
    onSilence: of => silent.set(of.key, true),
    onEnd(of) {
      busy.delete(of.key);
      if (busy.size === 0) for (const resolve of whenIdle.splice(0)) resolve();
    },
  });

  function begin(key: string, tenant: string, queue: string): QueueBatches {
    const { batchItems } = limits;
    const none = { call: undefined, stopTimer: undefined, waiting: [], heldBytes: 0 };
    const of: QueueBatches = { key, tenant, queue, batchItems, ...none };
    busy.set(key, of);
    setImmediate(send, of);
    return of;
  }

  return {
    submit(tenant, queue, config, item, settled) {
      const key = `${tenant}/${queue}`;
      const bytes = bytesOf(item);
      let of = busy.get(key);
      if (of === undefined) of = begin(key, tenant, queue);
      else if (silent.get(key) === true) return 'unavailable';
      else if (of.heldBytes + bytes > limits.heldBytesPerQueue) return 'overloaded';
      of.heldBytes += bytes;
      of.waiting.push({ config, item, settled, arrivedMs: clock.nowMs(), isLate: false });
      return undefined;
    },
    isSilent(tenant, queue) {
      const key = `${tenant}/${queue}`;
      return busy.has(key) && silent.get(key) === true;
    },
    idle: () =>
      busy.size === 0
        ? Promise.resolve()
        : new Promise(resolve => {
            whenIdle = [...whenIdle, resolve];
          }),
  };
}

/** Creates the function that sends a queue's waiting events, call after call, until there are none left. */
function createSend(
  options: BatchOptions & {
    readonly clock: Clock;
    readonly onAnswer: (of: QueueBatches) => void;
    readonly onSilence: (of: QueueBatches) => void;
    readonly onEnd: (of: QueueBatches) => void;
  },
): (of: QueueBatches) => void {
  const { ingest, limits, onFailure, clock, onAnswer, onSilence, onEnd } = options;
  const { ingestTimeoutMs } = limits;
  const tell = (batch: readonly Waiting[], answers: readonly IngestAnswer[]) => settle(batch, answers, onFailure);

  function send(of: QueueBatches): void {
    const batch = takeBatch(of, limits);
    const config = batch[0]?.config;
    if (config === undefined) return end(of);
    const call: IngestCall = { batch, startedMs: clock.nowMs() };
    of.call = call;
    watch(of);
    const items = batch.map(waiting => waiting.item);
    (async () => ingest(of.tenant, of.queue, config, items))().then(
      stored => {
        if (of.call === call) succeed(of, call, stored);
      },
      (error: unknown) => {
        if (of.call === call) fail(of, call, error);
      },
    );
  }

  function succeed(of: QueueBatches, { batch }: IngestCall, { answers, isPartial = false, failure }: Stored): void {
    onAnswer(of);
    if (failure !== undefined) onFailure('space', failure);
    const stored = answers.length;
    if (isPartial && stored > 0) takeBack(of, batch, stored);
    of.batchItems = Math.min(limits.batchItems, 2 * (isPartial && stored > 0 ? stored : of.batchItems));
    // Start the next call before writing any responses, so the store can work in the meantime.
    proceed(of, batch);
    tell(batch, answers);
  }

  function fail(of: QueueBatches, call: IngestCall, error: unknown): void {
    // The client of the store also has a time limit, which can be reached first.
    if (clock.nowMs() - call.startedMs >= ingestTimeoutMs / 2) return giveUp(of, call, error);
    onAnswer(of);
    onFailure('ingest', error);
    proceed(of, call.batch);
    tell(call.batch, []);
  }

  function proceed(of: QueueBatches, batch: readonly Waiting[]): void {
    release(of, batch);
    of.call = undefined;
    send(of);
  }

  function giveUp(of: QueueBatches, { batch }: IngestCall, error: unknown): void {
    onSilence(of);
    onFailure('ingest', error);
    const unanswered = [...batch, ...of.waiting];
    of.call = undefined;
    of.waiting = [];
    end(of);
    tell(unanswered, []);
  }

  function end(of: QueueBatches): void {
    of.stopTimer?.();
    of.stopTimer = undefined;
    onEnd(of);
  }

  /** Sets the timer for the oldest event. If there is a timer already, it is for this event, or for an older one. */
  function watch(of: QueueBatches): void {
    of.stopTimer ??= clock.setTimer(() => look(of), oldestMs(of) + ingestTimeoutMs - clock.nowMs());
  }

  function look(of: QueueBatches): void {
    const untilMs = clock.nowMs() - ingestTimeoutMs;
    of.stopTimer = undefined;
    if (of.call !== undefined && of.call.startedMs <= untilMs) {
      return giveUp(of, of.call, new DeadlineError(`no answer within ${ingestTimeoutMs} ms`));
    }
    const late = takeLate(of, untilMs);
    tell(late, []);
    for (const each of late) each.isLate = true;
    watch(of);
  }

  return send;
}

/** Passes on the results. Without a result, the event is unavailable. */
function settle(
  batch: readonly Waiting[],
  answers: readonly IngestAnswer[],
  onFailure: BatchOptions['onFailure'],
): void {
  for (const [index, { isLate, settled }] of batch.entries()) {
    if (isLate) continue;
    try {
      settled(answers[index] ?? UNAVAILABLE);
    } catch (error) {
      // Failing to write one response shouldn't prevent the others from being written.
      onFailure('answer', error);
    }
  }
}
