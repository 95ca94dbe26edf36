import { withDeadline } from '../../time/deadline.ts';
import type { IngressLimits } from './limits.ts';
import type { IngestAnswer, IngestItem, IngressStore, QueueConfig } from './store.ts';

/** An event on its way to the store, and whom to tell. */
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

/** Gathers events of one queue into few ingest calls. */
export interface Batches {
  /** `settled` is called exactly once, later; false: too much is held for this queue, nothing was taken. */
  readonly submit: (
    tenant: string,
    queue: string,
    config: QueueConfig,
    item: IngestItem,
    settled: (answer: IngestAnswer) => void,
  ) => boolean;
  /** Resolves when nothing waits and nothing is in flight. */
  readonly idle: () => Promise<void>;
}

/** What an event costs in memory besides its body, roughly: its strings, closures and promises. */
export const ITEM_OVERHEAD_BYTES = 1024;

const UNAVAILABLE: IngestAnswer = { answer: 'UNAVAILABLE' };

/**
 * One ingest call of a queue is in flight at a time; what comes meanwhile is the next call. The first of a busy period
 * waits for the end of this turn of the event loop, so that requests that were read together are stored together: no
 * timer, and no delay that an idle queue would feel. Queues do not wait for each other.
 */
export function createBatches(options: {
  ingest: IngressStore['ingest'];
  limits: IngressLimits;
  onFailure: (operation: string, error: unknown) => void;
}): Batches {
  const { ingest, limits, onFailure } = options;
  const busy = new Map<string, QueueBatches>();
  let whenIdle: (() => void)[] = [];
  /** Calls whose events are stored, and not known to be looked at yet. */
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
        // First the next call, then the answers: the store works while they are written.
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
          // What is stored is not acknowledged: the sender repeats it, and the repetition is seen.
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
        // One answer that cannot be written must not keep the others from theirs.
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

/** The longest run of waiting events that fits one call: within the limits, and extracted by one configuration. */
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
