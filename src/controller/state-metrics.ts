import { Gauge, type Registry } from '../telemetry/metrics.ts';
import type { ControllerRole } from './controller-options.ts';

/** Registers the objects in the controller's caches by kind, and the backlogs at risk. */
export function registerObjectMetrics(
  registry: Registry,
  deps: {
    /** The caches by kind. */
    readonly caches: Readonly<Record<string, { readonly store: { readonly size: () => number } }>>;
    readonly backlogsAtRisk: () => number;
  },
): void {
  new Gauge({
    name: 'sluice_controller_objects',
    help: 'Objects in the cache, by kind.',
    labelNames: ['kind'] as const,
    registers: [registry],
    collect() {
      for (const [kind, { store }] of Object.entries(deps.caches)) this.set({ kind }, store.size());
    },
  });
  new Gauge({
    name: 'sluice_controller_backlogs_at_risk',
    help: 'Subscriptions whose oldest waiting event is near the end of its retention (BacklogAtRisk). Only the leader reports it.',
    registers: [registry],
    collect() {
      this.set(deps.backlogsAtRisk());
    },
  });
}

/** Registers whether this replica leads and works, and how fresh its caches are. */
export function registerRuntimeMetrics(registry: Registry, runtime: Pick<ControllerRole, 'readiness' | 'works'>): void {
  new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this replica holds the Lease (1) or not (0). The name is that of client-go.',
    labelNames: ['name'] as const,
    registers: [registry],
    collect() {
      this.set({ name: 'sluice-controller' }, runtime.readiness().leading ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_controller_term_started',
    help: 'Whether this replica leads and reconciles (1); 0 on a standby, and on a leader that cannot start its work.',
    registers: [registry],
    collect() {
      this.set(runtime.readiness().leading && runtime.works() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_controller_watch_silence_seconds',
    help: 'Seconds since the quietest watch received anything, bookmarks included; NaN until all watches have begun. About a minute is usual.',
    registers: [registry],
    collect() {
      this.set((runtime.readiness().silentMs ?? Number.NaN) / 1_000);
    },
  });
}
