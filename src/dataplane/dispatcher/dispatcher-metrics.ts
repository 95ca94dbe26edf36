import { Counter, createLabeledCounter, type Registry, registerGauge } from '../../telemetry/metrics.ts';
import { createPlainHistogram } from '../../telemetry/plain-histogram.ts';
import { createTally } from '../../telemetry/tally.ts';
import type { Delivery, Ending } from './deliver.ts';
import type { AttemptResult } from './endpoint-client.ts';

/** DispatcherMetrics groups all dispatcher metrics. */
export interface DispatcherMetrics {
  /** Counts an attempt, and the outcome for its event. */
  readonly attempted: (result: AttemptResult, outcome: Ending['outcome'], delivery: Delivery) => void;
  /**
   * Counts an event that has ended without another attempt, because the event or too many of its claims have expired.
   */
  readonly gaveUp: (outcome: Ending['outcome']) => void;
  readonly failed: () => void;
}

/**
 * Creates the metrics for a dispatcher.
 *
 * @param inFlight returns the number of attempts in flight
 * @param nowMs Redis time, which is the clock for accepted events
 */
export function createDispatcherMetrics(
  registry: Registry,
  inFlight: () => number,
  nowMs: () => number,
): DispatcherMetrics {
  const registers = [registry];
  registerGauge(
    registry,
    'sluice_dispatcher_attempts_in_flight',
    'The number of attempts currently in progress within this process.',
    inFlight,
  );
  const attempts = createTally<`${AttemptResult['outcome']} ${AttemptResult['reason']}`>();
  new Counter({
    name: 'sluice_dispatcher_attempts_total',
    help: 'The number of attempts, by outcome (delivered, failed, or disabled) and reason. Attempts without consent of the endpoint (consent_missing) do not send the event.',
    labelNames: ['outcome', 'reason'] as const,
    registers,
    collect() {
      attempts.take((key, count) => {
        const [outcome, reason] = key.split(' ') as [string, string];
        this.inc({ outcome, reason }, count);
      });
    },
  }).inc({ outcome: 'delivered', reason: 'http_2xx' }, 0);
  const ended = createLabeledCounter<Ending['outcome']>(registry, {
    name: 'sluice_dispatcher_events_total',
    help: 'The number of claimed events, by result: delivered, failed (will be retried), dead, gone (410 from the endpoint; event is kept), or expired (retention period is over).',
    label: 'result',
    known: ['delivered', 'failed', 'dead', 'gone', 'expired'],
  });
  const replayed = new Counter({
    name: 'sluice_dispatcher_replayed_total',
    help: 'The number of replay deliveries, which are also included in sluice_dispatcher_events_total.',
    registers,
  });
  const failures = new Counter({
    name: 'sluice_dispatcher_failures_total',
    help: 'The number of failed operations on subscriptions or parts that had to be retried, e.g. because Redis was unavailable.',
    registers,
  });
  const latency = createPlainHistogram(registry, {
    name: 'sluice_dispatcher_attempt_duration_seconds',
    help: 'The attempt duration in seconds, from connecting until the end of the response.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  });
  const age = createPlainHistogram(registry, {
    name: 'sluice_dispatcher_delivery_age_seconds',
    help: 'The age of events in seconds at the time of delivery, measured from when they were accepted by ingress. Includes retries and pauses, but not replays or test events.',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3_600, 86_400, 345_600],
  });
  return {
    attempted(result, outcome, { replay, isTest, acceptedMs }) {
      attempts.add(`${result.outcome} ${result.reason}`);
      ended(outcome);
      latency.observe(result.latencyMs / 1_000);
      if (outcome !== 'delivered') return;
      if (replay !== undefined) replayed.inc();
      else if (!isTest) age.observe(Math.max(0, nowMs() - acceptedMs) / 1_000);
    },
    gaveUp: ended,
    failed: () => failures.inc(),
  };
}
