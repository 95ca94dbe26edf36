import { Gauge, type Registry } from '../telemetry/metrics.ts';
import type { ControllerRole } from './controller-options.ts';

/** What there is in the controller's caches: objects by kind, and how many of their backlogs are at risk. */
export function registerObjectMetrics(
  registry: Registry,
  deps: {
    /** The caches by kind. */
    readonly world: Readonly<Record<string, { readonly store: { readonly size: () => number } }>>;
    readonly backlogsAtRisk: () => number;
  },
): void {
  new Gauge({
    name: 'sluice_controller_objects',
    help: 'Objects in the cache, by kind.',
    labelNames: ['kind'] as const,
    registers: [registry],
    collect() {
      for (const [kind, { store }] of Object.entries(deps.world)) this.set({ kind }, store.size());
    },
  });
  new Gauge({
    name: 'sluice_controller_backlogs_at_risk',
    help: 'Subscriptions whose oldest waiting event is near the end of its retention, as the leader sees it (BacklogAtRisk).',
    registers: [registry],
    collect() {
      this.set(deps.backlogsAtRisk());
    },
  });
}

/** Whether this replica leads and works, and how fresh its caches are. */
export function registerRuntimeMetrics(registry: Registry, runtime: Pick<ControllerRole, 'readiness' | 'works'>): void {
  new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this replica holds the lease (1) or not (0), as client-go names it.',
    labelNames: ['name'] as const,
    registers: [registry],
    collect() {
      this.set({ name: 'sluice-controller' }, runtime.readiness().leading ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_controller_term_started',
    help: 'Whether this replica leads and brings objects into force (1); 0 on a standby, and on a leader that cannot start its work.',
    registers: [registry],
    collect() {
      this.set(runtime.readiness().leading && runtime.works() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_controller_watch_silence_seconds',
    help: 'Since when the quietest watch has heard nothing, bookmarks included; NaN before all have begun. A minute or so is usual.',
    registers: [registry],
    collect() {
      this.set((runtime.readiness().silentMs ?? Number.NaN) / 1_000);
    },
  });
}
