import { withDeadline } from '../../time/deadline.ts';
import type { IngressLimits } from './limits.ts';
import type { IngestAnswer, IngestItem, IngressStore, QueueConfig } from './store.ts';

/** An event that waits to be stored, with the callback that receives the result. */
interface Waiting {
  readonly config: QueueConfig;
  readonly item: IngestItem;
  readonly settled: (answer: IngestAnswer) => void;
}

interface QueueBatches {
  readonly key: string;
  readonly tenant: string;
  readonly queue: string;
  waiting: Waiting[];
  heldBytes: number;
}

/** Batches combines the events of a queue so that they need fewer ingest calls. */
export interface Batches {
  /**
   * Adds an event to the next batch, and later calls `settled` exactly once with the result. Returns false and does not
   * take the event if the memory limit of the queue is reached.
   */
  readonly submit: (
    tenant: string,
    queue: string,
    config: QueueConfig,
    item: IngestItem,
    settled: (answer: IngestAnswer) => void,
  ) => boolean;
  /** Resolves when there are no waiting events and no calls in flight. */
  readonly idle: () => Promise<void>;
}

/**
 * An estimate of the memory that an event needs in addition to the body. It covers the strings, closures and promises.
 */
export const ITEM_OVERHEAD_BYTES = 1024;

const UNAVAILABLE: IngestAnswer = { answer: 'UNAVAILABLE' };

/**
 * Creates the batches. Each queue has at most one ingest call in flight, and the events that arrive in the meantime
 * form the next call. The first call of a busy period is delayed until the end of the current turn of the event loop.
 * This allows requests that were read together to be stored together without a timer. Note that the queues are
 * independent of each other.
 */
export function createBatches(options: {
  ingest: IngressStore['ingest'];
  limits: IngressLimits;
  onFailure: (operation: string, error: unknown) => void;
}): Batches {
  const { ingest, limits, onFailure } = options;
  const busy = new Map<string, QueueBatches>();
  let whenIdle: (() => void)[] = [];
  /** The number of calls whose events are stored, but may not have been seen by a router yet. */
  let unseen = 0;

  function send(of: QueueBatches): void {
    const batch = takeBatch(of, limits);
    const config = batch[0]?.config;
    if (config === undefined) {
      busy.delete(of.key);
      rest();
      return;
    }
    const items = batch.map(waiting => waiting.item);
    withDeadline(limits.ingestTimeoutMs, () => ingest(of.tenant, of.queue, config, items)).then(
      ({ answers, seen }) => {
        if (seen !== undefined) tellWhenSeen(batch, answers, seen);
        // Start the next call before the answers are written so that the store can work in the meantime.
        release(of, batch);
        if (seen === undefined) tell(batch, answers);
      },
      (error: unknown) => {
        onFailure('ingest', error);
        release(of, batch);
        tell(batch, []);
      },
    );
  }

  function release(of: QueueBatches, batch: readonly Waiting[]): void {
    for (const { item } of batch) of.heldBytes -= item.body.length + ITEM_OVERHEAD_BYTES;
    send(of);
  }

  function tellWhenSeen(batch: readonly Waiting[], answers: readonly IngestAnswer[], seen: Promise<void>): void {
    unseen++;
    withDeadline(limits.ingestTimeoutMs, () => seen)
      .then(
        () => tell(batch, answers),
        (error: unknown) => {
          // The stored events are not acknowledged in this case. The sender will repeat them and the duplicates will be
          // detected.
          onFailure('lower', error);
          tell(batch, []);
        },
      )
      .finally(() => {
        unseen--;
        rest();
      });
  }

  function rest(): void {
    if (busy.size === 0 && unseen === 0) for (const resolve of whenIdle.splice(0)) resolve();
  }

  function tell(batch: readonly Waiting[], answers: readonly IngestAnswer[]): void {
    for (let index = 0; index < batch.length; index++) {
      try {
        batch[index]?.settled(answers[index] ?? UNAVAILABLE);
      } catch (error) {
        // An error while writing one answer should not prevent the other answers from being written.
        onFailure('answer', error);
      }
    }
  }

  return {
    submit(tenant, queue, config, item, settled) {
      const key = `${tenant}/${queue}`;
      const bytes = item.body.length + ITEM_OVERHEAD_BYTES;
      let of = busy.get(key);
      if (of === undefined) {
        of = { key, tenant, queue, waiting: [], heldBytes: 0 };
        busy.set(key, of);
        setImmediate(send, of);
      } else if (of.heldBytes + bytes > limits.heldBytesPerQueue) {
        return false;
      }
      of.heldBytes += bytes;
      of.waiting.push({ config, item, settled });
      return true;
    },
    idle: () =>
      busy.size === 0 && unseen === 0
        ? Promise.resolve()
        : new Promise(resolve => {
            whenIdle = [...whenIdle, resolve];
          }),
  };
}

/**
 * Returns the longest sequence of waiting events that fits in one call. The events must be within the limits and must
 * have been extracted with the same configuration.
 */
function takeBatch(of: QueueBatches, limits: IngressLimits): Waiting[] {
  const { waiting } = of;
  const first = waiting[0];
  if (first === undefined) return [];
  let count = 0;
  let bytes = 0;
  while (count < waiting.length && count < limits.batchItems) {
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
