import { withDeadline } from '../../time/deadline.ts';
import type { IngressLimits } from './limits.ts';
import type { IngestAnswer, IngestItem, IngressStore, QueueConfig } from './store.ts';

/** Event waiting to be stored, with a callback for the result. */
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
  /**
   * The maximum number of events in the next call. This is lowered if the store has only accepted a part of the last
   * call.
   */
  batchItems: number;
}

/** Batches combines events of the same queue in order to make fewer ingest calls. */
export interface Batches {
  /**
   * Adds an event to the next batch. `settled` will be called later, exactly once, with the result. If the queue has
   * reached its memory limit, the event is not accepted and this returns false.
   */
  readonly submit: (
    tenant: string,
    queue: string,
    config: QueueConfig,
    item: IngestItem,
    settled: (answer: IngestAnswer) => void,
  ) => boolean;
  /** Resolves when there are no events waiting and no calls in flight. */
  readonly idle: () => Promise<void>;
}

/** An estimate of the memory that is used by an event in addition to its body (for strings, closures, and promises). */
export const ITEM_OVERHEAD_BYTES = 1024;

const UNAVAILABLE: IngestAnswer = { answer: 'UNAVAILABLE' };

/**
 * Creates the batches for all queues. For each queue, there is at most one call in flight. If more events arrive in the
 * meantime, they are included in the next call. At the start of a busy period, the first call is deferred to the end of
 * the current event loop turn. This means that requests which were read together can also be stored together, without
 * needing a timer. If the store has left some events for later, they are the first ones in the next call. Different
 * queues don't affect each other.
 */
export function createBatches(options: {
  ingest: IngressStore['ingest'];
  limits: IngressLimits;
  onFailure: (operation: string, error: unknown) => void;
}): Batches {
  const { ingest, limits, onFailure } = options;
  const busy = new Map<string, QueueBatches>();
  let whenIdle: (() => void)[] = [];

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
      ({ answers, isPartial = false, failure }) => {
        if (failure !== undefined) onFailure('space', failure);
        if (isPartial && answers.length > 0) takeBack(of, batch, answers.length);
        else of.batchItems = Math.min(limits.batchItems, 2 * of.batchItems);
        // Start the next call before writing any answers, so the store can work in the meantime.
        release(of, batch);
        tell(batch, answers);
      },
      (error: unknown) => {
        onFailure('ingest', error);
        release(of, batch);
        tell(batch, []);
      },
    );
  }

  /** Moves all events which have not been stored to the front. We must not send them again and again. */
  function takeBack(of: QueueBatches, batch: Waiting[], stored: number): void {
    of.waiting.unshift(...batch.splice(stored));
    of.batchItems = Math.min(limits.batchItems, 2 * stored);
  }

  function release(of: QueueBatches, batch: readonly Waiting[]): void {
    for (const { item } of batch) of.heldBytes -= item.body.length + ITEM_OVERHEAD_BYTES;
    send(of);
  }

  function rest(): void {
    if (busy.size === 0) for (const resolve of whenIdle.splice(0)) resolve();
  }

  function tell(batch: readonly Waiting[], answers: readonly IngestAnswer[]): void {
    for (let index = 0; index < batch.length; index++) {
      try {
        batch[index]?.settled(answers[index] ?? UNAVAILABLE);
      } catch (error) {
        // Failing to write one answer shouldn't prevent the others from being written.
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
        of = { key, tenant, queue, waiting: [], heldBytes: 0, batchItems: limits.batchItems };
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
      busy.size === 0
        ? Promise.resolve()
        : new Promise(resolve => {
            whenIdle = [...whenIdle, resolve];
          }),
  };
}

/**
 * Returns as many of the waiting events as possible for a single call. All of the events must be within the limits, and
 * they must have been extracted using the same configuration.
 */
function takeBatch(of: QueueBatches, limits: IngressLimits): Waiting[] {
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
