import { Counter, Gauge, Histogram, type Registry } from '../../telemetry/metrics.ts';

/** QueueMetrics is used to record the metrics for a single queue. All durations are in seconds. */
export type QueueMetrics = {
  readonly added: () => void;
  readonly retried: () => void;
  readonly taken: (waitedSeconds: number) => void;
  readonly finished: (workedSeconds: number) => void;
  /** Registers a function that is called for every scrape, until `close` is called. */
  readonly observe: (state: () => { depth: number; unfinishedSeconds: number; longestSeconds: number }) => void;
  readonly close: () => void;
};

/** Buckets for both histograms, ranging from 10 nanoseconds to 1,000 seconds as in client-go and controller-runtime. */
const BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1_000];

/**
 * Registers the `workqueue_*` metrics under the names and labels used by controller-runtime so that existing dashboards
 * will work. Must only be called once for each registry. The returned function creates the metrics for one queue.
 */
export function createQueueMetrics(registry: Registry): (name: string) => QueueMetrics {
  const labelNames = ['name', 'controller'] as const;
  const registers = [registry];
  type State = ReturnType<Parameters<QueueMetrics['observe']>[0]>;
  const states = new Map<string, () => State>();
  const gauge = (name: string, help: string, read: (state: State) => number) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      collect() {
        for (const [queue, state] of states) this.set({ name: queue, controller: queue }, read(state()));
      },
    });
  gauge('workqueue_depth', 'The number of keys in the queue.', state => state.depth);
  gauge(
    'workqueue_unfinished_work_seconds',
    'The total time that all workers have spent on their current keys, in seconds. Large values indicate stuck workers.',
    state => state.unfinishedSeconds,
  );
  gauge(
    'workqueue_longest_running_processor_seconds',
    'The longest time that a worker has spent on its current key, in seconds.',
    state => state.longestSeconds,
  );
  const adds = new Counter({
    name: 'workqueue_adds_total',
    help: 'The number of keys added to the queue.',
    labelNames,
    registers,
  });
  const retries = new Counter({
    name: 'workqueue_retries_total',
    help: 'The number of keys added again, after a failure or to be processed at a later time.',
    labelNames,
    registers,
  });
  const queued = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'The time that a key waits in the queue before it is processed, in seconds.',
    labelNames,
    buckets: BUCKETS,
    registers,
  });
  const worked = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'The time needed to process a key, in seconds.',
    labelNames,
    buckets: BUCKETS,
    registers,
  });

  return name => {
    const labels = { name, controller: name };
    // Create both counters up front so that a rate over them won't have a gap.
    adds.inc(labels, 0);
    retries.inc(labels, 0);
    return {
      added: () => adds.inc(labels),
      retried: () => retries.inc(labels),
      taken: seconds => queued.observe(labels, seconds),
      finished: seconds => worked.observe(labels, seconds),
      observe: state => states.set(name, state),
      close: () => states.set(name, () => ({ depth: 0, unfinishedSeconds: 0, longestSeconds: 0 })),
    };
  };
}
