import { Counter, Gauge, type Registry, registerGauge } from '../telemetry/metrics.ts';
import type { ControllerRole } from './controller-options.ts';

/** Registers metrics for the number of cached objects of each kind, and for the number of backlogs that are at risk. */
export function registerObjectMetrics(
  registry: Registry,
  deps: {
    /** The caches, by kind. */
    readonly caches: Readonly<Record<string, { readonly store: { readonly size: () => number } }>>;
    readonly backlogsAtRisk: () => number;
  },
): void {
  new Gauge({
    name: 'sluice_controller_objects',
    help: 'The number of cached objects, by kind.',
    labelNames: ['kind'] as const,
    registers: [registry],
    collect() {
      for (const [kind, { store }] of Object.entries(deps.caches)) this.set({ kind }, store.size());
    },
  });
  registerGauge(
    registry,
    'sluice_controller_backlogs_at_risk',
    'The number of subscriptions whose oldest waiting event is close to the end of its retention period (BacklogAtRisk). Only the leader reports it.',
    deps.backlogsAtRisk,
  );
}

/** Registers a metric for the terms of this replica. Returns a function to call at the start of each term. */
export function createTermMetrics(registry: Registry): () => void {
  const terms = new Counter({
    name: 'sluice_controller_terms_total',
    help: 'The number of times that this replica has become the leader. In contrast to leader_election_master_status, this includes terms that started and ended between two scrapes.',
    registers: [registry],
  });
  return () => terms.inc();
}

/**
 * Registers metrics which indicate whether this replica is the leader, whether it is working, and whether its caches
 * are up to date.
 */
export function registerRuntimeMetrics(registry: Registry, runtime: Pick<ControllerRole, 'readiness' | 'works'>): void {
  new Gauge({
    name: 'leader_election_master_status',
    help: '1 if this replica currently holds the Lease, and 0 otherwise. The metric has the same name as in client-go.',
    labelNames: ['name'] as const,
    registers: [registry],
    collect() {
      this.set({ name: 'sluice-controller' }, runtime.readiness().leading ? 1 : 0);
    },
  });
  registerGauge(
    registry,
    'sluice_controller_term_started',
    '1 if this replica is leading and reconciling, and 0 otherwise. Also 0 for a leader that cannot start its work.',
    () => (runtime.readiness().leading && runtime.works() ? 1 : 0),
  );
  registerGauge(
    registry,
    'sluice_controller_watch_silence_seconds',
    'The time since the last event or bookmark on the least active watch, in seconds. The value is usually about one minute, and NaN until all watches have been started.',
    () => (runtime.readiness().silentMs ?? Number.NaN) / 1_000,
  );
}
