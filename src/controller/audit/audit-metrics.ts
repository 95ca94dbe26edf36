import { Counter, Histogram, type Registry } from '../../telemetry/metrics.ts';
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
  const registers = [registry];
  const repaired = new Counter({
    name: 'sluice_controller_drift_repaired_total',
    help: 'The number of differences between Redis and the last written state that were repaired, by kind of state.',
    labelNames: ['what'] as const,
    registers,
  });
  const swept = new Counter({
    name: 'sluice_controller_swept_total',
    help: 'The number of orphans removed from Redis, by kind.',
    labelNames: ['what'] as const,
    registers,
  });
  const passes = new Histogram({
    name: 'sluice_controller_drift_pass_duration_seconds',
    help: 'The time needed to compare the control state in Redis with the objects, in seconds.',
    buckets: [0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60],
    registers,
  });
  for (const what of DRIFTED) repaired.inc({ what }, 0);
  for (const what of SWEPT) swept.inc({ what }, 0);
  return {
    repaired: what => repaired.inc({ what }),
    swept: what => swept.inc({ what }),
    passed: seconds => passes.observe(seconds),
  };
}
