import { Counter, Histogram, type Registry } from '../../telemetry/metrics.ts';
import { createTally } from '../../telemetry/tally.ts';

/** What became of an event that was handed to the store. */
export type EventResult =
  | 'accepted'
  | 'duplicate'
  | 'missing_group_key'
  | 'stale'
  | 'closed'
  | 'full'
  | 'gone'
  | 'unavailable';

/** The numbers of the ingress role. */
export interface IngressMetrics {
  /** One answer: status and how long it took, in milliseconds; 499 when the sender went away before it. */
  readonly countRequest: (status: number, durationMs: number) => void;
  readonly countEvent: (result: EventResult) => void;
}

/** Registers the metrics. */
export function createIngressMetrics(registry: Registry): IngressMetrics {
  const requests = createTally<number>();
  const events = createTally<EventResult>();
  registry.registerMetric(
    new Counter({
      name: 'sluice_ingress_requests_total',
      help: 'Requests answered by ingress, by HTTP status code; 499: the sender went away before the answer.',
      labelNames: ['code'],
      registers: [],
      collect() {
        requests.take((code, count) => this.inc({ code: String(code) }, count));
      },
    }),
  );
  registry.registerMetric(
    new Counter({
      name: 'sluice_ingress_events_total',
      help:
        'Events handed to the store, by result: accepted, duplicate (same id again), missing_group_key (accepted, but ' +
        'routed to nobody), stale (the configuration changed: tried again), closed, full, gone, unavailable.',
      labelNames: ['result'],
      registers: [],
      collect() {
        events.take((result, count) => this.inc({ result }, count));
      },
    }),
  );
  const duration = new Histogram({
    name: 'sluice_ingress_request_duration_seconds',
    help: 'Time from the head of a request being read to its answer being written, in seconds.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [],
  });
  registry.registerMetric(duration);
  return {
    countRequest(status, durationMs) {
      requests.add(status);
      duration.observe(durationMs / 1_000);
    },
    countEvent: events.add,
  };
}
