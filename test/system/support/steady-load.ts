import { setTimeout as delay } from 'node:timers/promises';
import { makeSample, type Publication, type Publisher, type Sample } from './publisher.ts';

/** The maximum backlog that a delayed lane catches up with. */
const MADE_UP_MS = 1_000;

/** The events of a group key in a stream, which are sent one after another. */
export interface LoadLane {
  readonly queue: string;
  readonly groupKey: string;
}

export type LoadedEvent = LoadLane & { readonly sample: Sample; readonly publication: Publication };

export interface Load {
  /** All acknowledged events so far. A lane's events are in the order of acceptance. */
  readonly events: readonly LoadedEvent[];
  /** Waits until all events in progress are acknowledged. Returns the average number of events per second. */
  readonly stop: () => Promise<number>;
}

/**
 * Publishes `perSecond` events, distributed evenly over all lanes, until it is stopped. A lane waits for the
 * acknowledgement before sending the next event. If it is delayed, it catches up with the events of up to one second.
 */
export function startLoad(
  publisherOf: (queue: string) => Publisher,
  lanes: readonly LoadLane[],
  perSecond: number,
): Load {
  const events: LoadedEvent[] = [];
  const everyMs = (1_000 * lanes.length) / perSecond;
  const startedMs = performance.now();
  let stopped = false;

  async function run(lane: LoadLane, index: number): Promise<void> {
    const publisher = publisherOf(lane.queue);
    let dueMs = startedMs + (everyMs * index) / lanes.length;
    for (let n = 0; !stopped; n++) {
      await delay(Math.max(0, dueMs - performance.now()));
      const sample = makeSample(`${lane.queue}.${lane.groupKey}.${n}`, lane.groupKey, `event ${n} of ${lane.groupKey}`);
      const publication = await publisher.publish(sample);
      if (publication.status !== 202) throw new Error(`${sample.id}: ${publication.status} ${publication.body.code}`);
      events.push({ ...lane, sample, publication });
      dueMs = Math.max(dueMs + everyMs, performance.now() - MADE_UP_MS);
    }
  }

  const running = Promise.all(lanes.map(run));
  // The error is reported when the caller waits for the result.
  running.catch(() => {});
  return {
    events,
    stop: async () => {
      stopped = true;
      const tookMs = performance.now() - startedMs;
      await running;
      return (events.length * 1_000) / tookMs;
    },
  };
}
