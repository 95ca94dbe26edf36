import { Counter, Gauge, Histogram, type Registry } from '../../telemetry/metrics.ts';
import { createQueueMetrics, type QueueMetrics } from './queue-metrics.ts';

export type ReconcileResult = 'success' | 'requeue' | 'requeue_after' | 'error';

/** ControllerMetrics records the metrics for a single controller. */
export type ControllerMetrics = {
  readonly reconciled: (result: ReconcileResult, seconds: number) => void;
  readonly failed: () => void;
  readonly setMaxConcurrent: (workers: number) => void;
  /** Adds 1 when a worker starts processing a key, and subtracts 1 when the key is done. */
  readonly addActiveWorkers: (difference: number) => void;
  readonly queue: QueueMetrics;
};

/** The buckets of controller-runtime, in seconds. */
const BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75,
  2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];

/**
 * Registers the `controller_runtime_*` and `workqueue_*` metrics under the names used by controller-runtime. Must only
 * be called once per registry. The returned function creates the metrics for one controller.
 */
export function createControllerMetrics(registry: Registry): (controller: string) => ControllerMetrics {
  const registers = [registry];
  const labelNames = ['controller'] as const;
  const queueMetrics = createQueueMetrics(registry);
  const total = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'The number of reconciliations, by result.',
    labelNames: ['controller', 'result'] as const,
    registers,
  });
  const errors = new Counter({
    name: 'controller_runtime_reconcile_errors_total',
    help: 'The number of failed reconciliations.',
    labelNames,
    registers,
  });
  const time = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'The duration of each reconciliation in seconds.',
    labelNames,
    buckets: BUCKETS,
    registers,
  });
  const most = new Gauge({
    name: 'controller_runtime_max_concurrent_reconciles',
    help: 'The number of workers of this controller.',
    labelNames,
    registers,
  });
  const active = new Gauge({
    name: 'controller_runtime_active_workers',
    help: 'The number of workers currently in use.',
    labelNames,
    registers,
  });

  return controller => {
    for (const result of ['success', 'requeue', 'requeue_after', 'error']) total.inc({ controller, result }, 0);
    errors.inc({ controller }, 0);
    active.set({ controller }, 0);
    return {
      reconciled: (result, seconds) => {
        total.inc({ controller, result });
        time.observe({ controller }, seconds);
      },
      failed: () => errors.inc({ controller }),
      setMaxConcurrent: workers => most.set({ controller }, workers),
      addActiveWorkers: difference => active.inc({ controller }, difference),
      queue: queueMetrics(controller),
    };
  };
}
