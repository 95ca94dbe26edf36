import type { OwnedQueue } from '../../redis/queue-store.ts';
import type { ReadTraceparents } from '../../redis/traceparents.ts';
import type { Logger } from '../../telemetry/log.ts';
import { isSampled, type Tracing } from '../../telemetry/tracing.ts';

/** Events of a batch that get a span at most: a batch is one command more when traced, and a bounded one. */
const TRACED_AT_ONCE = 64;

export interface RoutedPage {
  readonly queue: OwnedQueue;
  /** Stream ids of the events, in order. */
  readonly ids: readonly string[];
  /** Wall clock, ms. */
  readonly beganMs: number;
}

/** Makes the router's spans; the answer never rejects, and nobody has to wait for it. */
export type TraceRouting = (page: RoutedPage) => Promise<void>;

/**
 * A consumer span for each event of a batch whose trace is recorded. Routing reads no metadata: that of a traced batch is
 * read afterwards, beside the way of the events.
 */
export function createRoutingTrace(deps: {
  readonly tracing: Tracing;
  readonly readTraceparents: ReadTraceparents;
  readonly log: Logger;
}): TraceRouting {
  return async ({ queue, ids, beganMs }) => {
    try {
      const traced = ids.slice(0, TRACED_AT_ONCE);
      const parents = await deps.readTraceparents(queue, traced);
      for (const parent of parents.filter(isSampled)) {
        const span = deps.tracing.start(`route ${queue.queue}`, {
          kind: 'consumer',
          parent,
          startMs: beganMs,
          attributes: {
            'messaging.system': 'sluice',
            'messaging.operation.name': 'route',
            'messaging.operation.type': 'process',
            'messaging.destination.name': queue.queue,
            'messaging.batch.message_count': ids.length,
            'sluice.tenant': queue.tenant,
          },
        });
        span.end();
      }
    } catch (error) {
      deps.log.debug({ err: error }, 'routing could not be traced');
    }
  };
}
