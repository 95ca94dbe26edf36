import type { IngressLimits } from './limits.ts';
import type { IngestAnswer, IngestItem, QueueConfig } from './store.ts';

/** Event that has no response yet, with a callback for the result. */
export interface Waiting {
  readonly config: QueueConfig;
  readonly item: IngestItem;
  readonly arrivedMs: number;
  readonly settled: (answer: IngestAnswer) => void;
  /** Set when the event gets its response before its call has ended. */
  isLate: boolean;
}

/** A call that stores events. */
export interface IngestCall {
  readonly batch: Waiting[];
  readonly startedMs: number;
}

/** A queue's events, from oldest to newest: those of the call in flight, and those that wait for the next call. */
export interface QueueBatches {
  readonly key: string;
  readonly tenant: string;
  readonly queue: string;
  call: IngestCall | undefined;
  waiting: Waiting[];
  heldBytes: number;
  /** The maximum number of events in the next call. Lowered if the store has only accepted a part of the last call. */
  batchItems: number;
  /** Stops the timer for the oldest event. */
  stopTimer: (() => void) | undefined;
}

/** An estimate of the memory that is used by an event in addition to its body (for strings, closures, and promises). */
export const ITEM_OVERHEAD_BYTES = 1024;

export const bytesOf = (item: IngestItem): number => item.body.length + ITEM_OVERHEAD_BYTES;

/** Subtracts events that no longer wait from the bytes that the queue holds. */
export function release(of: QueueBatches, batch: readonly Waiting[]): void {
  for (const { item } of batch) of.heldBytes -= bytesOf(item);
}

/**
 * Moves all events of the call which have not been stored to the front. We must not resend them and again, so the
 * next call is smaller.
 */
export function takeBack(of: QueueBatches, batch: Waiting[], stored: number): void {
  const left = batch.splice(stored);
  of.waiting.unshift(...left.filter(({ isLate }) => !isLate));
  release(
    of,
    left.filter(({ isLate }) => isLate),
  );
}

/**
 * Returns the events that arrived until then and have no response yet. The waiting events are removed from the queue.
 */
export function takeLate(of: QueueBatches, untilMs: number): Waiting[] {
  const { call, waiting } = of;
  const late = call?.batch.filter(({ isLate, arrivedMs }) => !isLate && arrivedMs <= untilMs) ?? [];
  const first = waiting.findIndex(({ arrivedMs }) => arrivedMs > untilMs);
  const expired = waiting.splice(0, first < 0 ? waiting.length : first);
  release(of, expired);
  return [...late, ...expired];
}

/** Returns the time at which the oldest event arrived that has no response yet, or at which the call was started. */
export function oldestMs({ call, waiting }: QueueBatches): number {
  const oldest = call?.batch.find(({ isLate }) => !isLate) ?? waiting[0];
  return Math.min(oldest?.arrivedMs ?? Infinity, call?.startedMs ?? Infinity);
}

/**
 * Returns as many of the waiting events as possible for a single call. All of the events must be within the limits and
 * must have been extracted using the same configuration.
 */
export function takeBatch(of: QueueBatches, limits: Pick<IngressLimits, 'batchBytes'>): Waiting[] {
  const { waiting } = of;
  const first = waiting[0];
  if (first === undefined) return [];
  let count = 0;
  let bytes = 0;
  while (count < waiting.length && count < of.batchItems) {
    const next = waiting[count];
    if (next === undefined || next.config.cfgv !== first.config.cfgv || next.config.gen !== first.config.gen) break;
    bytes += next.item.body.length;
    if (count > 0 && bytes > limits.batchBytes) break;
    count += 1;
  }
  if (count === waiting.length) {
    of.waiting = [];
    return waiting;
  }
  return waiting.splice(0, count);
}
