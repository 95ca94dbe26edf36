import { Gauge, type Registry } from '../telemetry/metrics.ts';
import type { ControllerRole } from './controller-options.ts';

/** Registers metrics for how many objects of each kind are cached and how many backlogs are at risk. */
export function registerObjectMetrics(
  registry: Registry,
  deps: {
    /** Caches by kind. */
    readonly caches: Readonly<Record<string, { readonly store: { readonly size: () => number } }>>;
    readonly backlogsAtRisk: () => number;
  },
): void {
  new Gauge({
    name: 'sluice_controller_objects',
    help: 'Number of objects in the cache, by kind.',
    labelNames: ['kind'] as const,
    registers: [registry],
    collect() {
      for (const [kind, { store }] of Object.entries(deps.caches)) this.set({ kind }, store.size());
    },
  });
  new Gauge({
    name: 'sluice_controller_backlogs_at_risk',
    help: 'Number of subscriptions whose oldest waiting event is close to the end of its retention period (BacklogAtRisk). Only the leader reports this metric.',
    registers: [registry],
    collect() {
      this.set(deps.backlogsAtRisk());
    },
  });
}

/**
 * Registers metrics indicating whether this replica is the leader, whether it works, and whether its caches are up to
 * date.
 */
export function registerRuntimeMetrics(registry: Registry, runtime: Pick<ControllerRole, 'readiness' | 'works'>): void {
  new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this replica holds the Lease (1) or not (0). The metric has the same name as in client-go.',
    labelNames: ['name'] as const,
    registers: [registry],
    collect() {
      this.set({ name: 'sluice-controller' }, runtime.readiness().leading ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_controller_term_started',
    help: 'Whether this replica is the leader and reconciles (1) or not (0). The value is also 0 if the leader cannot start its work.',
    registers: [registry],
    collect() {
      this.set(runtime.readiness().leading && runtime.works() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_controller_watch_silence_seconds',
    help: 'Number of seconds since the least active watch received an event or a bookmark. A value of about one minute is normal. The value is NaN until all watches have started.',
    registers: [registry],
    collect() {
      this.set((runtime.readiness().silentMs ?? Number.NaN) / 1_000);
    },
  });
}
