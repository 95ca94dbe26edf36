import { Counter, Gauge, type Registry } from '../../telemetry/metrics.ts';
import { createPlainHistogram } from '../../telemetry/plain-histogram.ts';
import { createTally } from '../../telemetry/tally.ts';

/** Possible results of storing an event. */
export const EVENT_RESULTS = [
  'accepted',
  'duplicate',
  'missing_group_key',
  'stale',
  'closed',
  'full',
  'gone',
  'unavailable',
] as const;
export type EventResult = (typeof EVENT_RESULTS)[number];

/** IngressMetrics groups all metrics for the ingress role. */
export interface IngressMetrics {
  /**
   * Counts an answer by status and duration in milliseconds. A status of 499 means that the sender disconnected before
   * the answer was sent.
   */
  readonly countRequest: (status: number, durationMs: number) => void;
  readonly countEvent: (result: EventResult) => void;
  /** Registers the number of bytes held in memory, along with the limit. The function will be called at each scrape. */
  readonly observeHeld: (heldBytes: () => number, limitBytes: number) => void;
}

export function createIngressMetrics(registry: Registry): IngressMetrics {
  const requests = createTally<number>();
  const events = createTally<EventResult>();
  const answered = new Counter({
    name: 'sluice_ingress_requests_total',
    help: 'Number of requests that ingress answered, by HTTP status code. The code 499 means that the client closed the connection before the response.',
    labelNames: ['code'] as const,
    registers: [registry],
    collect() {
      requests.take((code, count) => this.inc({ code: String(code) }, count));
    },
  });
  for (const code of ['202', '401', '429', '503']) answered.inc({ code }, 0);
  const stored = new Counter({
    name: 'sluice_ingress_events_total',
    help: 'Number of events that were passed to the store, by result: accepted, duplicate (same id again), missing_group_key (accepted but not routed), stale (retried because the configuration changed), closed, full, gone, unavailable.',
    labelNames: ['result'] as const,
    registers: [registry],
    collect() {
      events.take((result, count) => this.inc({ result }, count));
    },
  });
  for (const result of EVENT_RESULTS) stored.inc({ result }, 0);
  const duration = createPlainHistogram({
    name: 'sluice_ingress_request_duration_seconds',
    help: 'Duration of a request in seconds, from reading its headers to writing its response.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  });
  let held = () => 0;
  let limit = 0;
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  gauge(
    'sluice_ingress_held_bytes',
    'Number of bytes of events in memory that are being received or are not stored yet.',
    () => held(),
  );
  gauge(
    'sluice_ingress_held_bytes_limit',
    'Maximum number of bytes of events in memory. If this limit is exceeded, ingress responds with 503.',
    () => limit,
  );
  return {
    countRequest(status, durationMs) {
      requests.add(status);
      duration.observe(durationMs / 1_000);
    },
    countEvent: events.add,
    observeHeld(heldBytes, limitBytes) {
      held = heldBytes;
      limit = limitBytes;
    },
  };
}
