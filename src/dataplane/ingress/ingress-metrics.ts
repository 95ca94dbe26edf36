import { CONNECTION_LIMITS, type ConnectionLimit } from '../../http/connections/connection-limit.ts';
import { Counter, createLabeledCounter, type Registry, registerGauge } from '../../telemetry/metrics.ts';
import { createPlainHistogram } from '../../telemetry/plain-histogram.ts';
import { SENDER_LIMITS, type SenderLimit } from './sender-limits.ts';

/** Possible results of storing an event. */
export const EVENT_RESULTS = [
  'accepted',
  'duplicate',
  'missing_group_key',
  'stale',
  'closed',
  'full',
  'limit',
  'gone',
  'reserved',
  'unavailable',
] as const;
export type EventResult = (typeof EVENT_RESULTS)[number];

/** The reasons why events are refused because of the memory that Redis is using. */
const MEMORY_REFUSALS = ['share', 'full'] as const;

/** IngressMetrics groups all metrics for the ingress role. */
export interface IngressMetrics {
  /**
   * Counts a response by its status and its duration, in milliseconds. If the status is 499, the sender has
   * disconnected before the response was sent.
   */
  readonly countRequest: (status: number, durationMs: number) => void;
  /** Counts a request which was refused by a limit. Also used for limits of the sandbox. */
  readonly countLimited: (limit: SenderLimit) => void;
  readonly countEvent: (result: EventResult) => void;
  readonly countMemoryRefusal: (reason: (typeof MEMORY_REFUSALS)[number]) => void;
  /**
   * Registers the number of bytes that are held in memory, and the limit for this. The function will be called at each
   * scrape.
   */
  readonly observeHeld: (heldBytes: () => number, limitBytes: number) => void;
  /** Registers the number of open connections. The function will be called at each scrape. */
  readonly observeConnections: (open: () => number) => void;
  readonly countClosedConnection: (limit: ConnectionLimit) => void;
}

export function createIngressMetrics(registry: Registry): IngressMetrics {
  const answered = createLabeledCounter<number>(registry, {
    name: 'sluice_ingress_requests_total',
    help: 'The number of requests answered by ingress, by HTTP status code (499 if the client closed the connection before the response).',
    label: 'code',
    known: [202, 401, 429, 503],
  });
  const countEvent = createLabeledCounter(registry, {
    name: 'sluice_ingress_events_total',
    help: 'The number of events passed to the store, by result: accepted, duplicate (same id again), missing_group_key (accepted but not routed), stale (retried after a configuration change), closed, full (quota of the stream), limit (stored bytes of the account), gone, reserved (the id is one that only ingress generates), or unavailable.',
    label: 'result',
    known: EVENT_RESULTS,
  });
  const countLimited = createLabeledCounter(registry, {
    name: 'sluice_ingress_limited_total',
    help: 'The number of requests rejected because a limit of events per second was reached, including those of the sandbox, by limit: address (of the client), key, workspace, or account (spec.limits.eventsPerSecond of the Account).',
    label: 'limit',
    known: SENDER_LIMITS,
  });
  const countMemoryRefusal = createLabeledCounter(registry, {
    name: 'sluice_ingress_memory_refusals_total',
    help: 'The number of events rejected because of the memory used in Redis, by reason: share (429, the account stores more than its share of the memory of a master above 70 %), or full (503, the master is at 82 %).',
    label: 'reason',
    known: MEMORY_REFUSALS,
  });
  const duration = createPlainHistogram(registry, {
    name: 'sluice_ingress_request_duration_seconds',
    help: 'The request duration in seconds, from reading the headers until the response has been written.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  });
  const countClosedConnection = createLabeledCounter(registry, {
    name: 'sluice_ingress_connections_closed_total',
    help: 'The number of connections closed because a limit of connections was reached, by limit: address (of the client), or total.',
    label: 'limit',
    known: CONNECTION_LIMITS,
  });
  let held = () => 0;
  let connections = () => 0;
  let limit = 0;
  registerGauge(
    registry,
    'sluice_ingress_held_bytes',
    'The number of event bytes that are being received or waiting to be stored. With a Content-Length, the whole body counts from the start.',
    () => held(),
  );
  registerGauge(
    registry,
    'sluice_ingress_held_bytes_limit',
    'The maximum number of event bytes held in memory. Ingress responds with 503 to a workspace that would use more of them than it leaves free.',
    () => limit,
  );
  registerGauge(registry, 'sluice_ingress_connections', 'The number of open connections.', () => connections());
  return {
    countRequest(status, durationMs) {
      answered(status);
      duration.observe(durationMs / 1_000);
    },
    countLimited,
    countEvent,
    countMemoryRefusal,
    observeHeld(heldBytes, limitBytes) {
      held = heldBytes;
      limit = limitBytes;
    },
    observeConnections(open) {
      connections = open;
    },
    countClosedConnection,
  };
}

/** The numbers of stored events, by outcome. */
export interface RoutedEvents {
  readonly references: number;
  readonly withoutKey: number;
  readonly inactive: number;
}

/**
 * Creates the metrics for an ingress that routes events in the same step as it stores them. Returns a function that
 * counts a step.
 */
export function createPartIngressMetrics(registry: Registry): (routed: RoutedEvents) => void {
  const routed = new Counter({
    name: 'sluice_ingress_routed_total',
    help: 'The number of deliveries created when events were stored. Deliveries created later are counted in sluice_dispatcher_routed_total.',
    registers: [registry],
  });
  const notRouted = createLabeledCounter(registry, {
    name: 'sluice_ingress_not_routed_total',
    help: 'The number of stored events without any delivery, by reason: missing_group_key, or not_activated (group key not activated for any subscription).',
    label: 'reason',
    known: ['missing_group_key', 'not_activated'],
  });
  return ({ references, withoutKey, inactive }) => {
    if (references > 0) routed.inc(references);
    if (withoutKey > 0) notRouted('missing_group_key', withoutKey);
    if (inactive > 0) notRouted('not_activated', inactive);
  };
}
