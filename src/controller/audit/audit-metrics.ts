import { createLabeledCounter, Histogram, type Registry } from '../../telemetry/metrics.ts';
import { DRIFTED, type Drifted } from './drift.ts';

/** The kinds of orphaned data that can be removed by the garbage collection. */
const SWEPT = ['queue', 'inbox', 'integration', 'tenant', 'part'] as const;
export type Swept = (typeof SWEPT)[number];

export interface AuditMetrics {
  readonly repaired: (what: Drifted) => void;
  readonly swept: (what: Swept) => void;
  readonly passed: (seconds: number) => void;
}

export function createAuditMetrics(registry: Registry): AuditMetrics {
  const repaired = createLabeledCounter(registry, {
    name: 'sluice_controller_drift_repaired_total',
    help: 'The number of differences between Redis and the last written state that were repaired, by kind of state.',
    label: 'what',
    known: DRIFTED,
  });
  const swept = createLabeledCounter(registry, {
    name: 'sluice_controller_swept_total',
    help: 'The number of orphans removed from Redis, by kind.',
    label: 'what',
    known: SWEPT,
  });
  const passes = new Histogram({
    name: 'sluice_controller_drift_pass_duration_seconds',
    help: 'The time needed to compare the control state in Redis with the objects, in seconds.',
    buckets: [0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60],
    registers: [registry],
  });
  return {
    repaired,
    swept,
    passed: seconds => passes.observe(seconds),
  };
}
