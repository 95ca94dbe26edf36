import { collectDefaultMetrics } from 'prom-client';
import { Gauge, type Registry } from './metrics.ts';
import type { HealthState } from './role-health.ts';

/** What is running, in every process: its version, and the usual numbers of a Node process. Call once a process. */
export function registerProcessMetrics(registry: Registry, version: string): void {
  new Gauge({
    name: 'sluice_build_info',
    help: 'Always 1; its labels say which Sluice runs, on which Node.',
    labelNames: ['version', 'node_version'] as const,
    registers: [registry],
  }).set({ version, node_version: process.version }, 1);
  // The delay of the event loop is measured by a timer: 50 times a second are enough for it.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 });
}

/** Whether each role of this process is ready, and what keeps it from working, as `/readyz` says. */
export function registerRoleHealth(registry: Registry, roles: Readonly<Record<string, () => HealthState>>): void {
  new Gauge({
    name: 'sluice_role_ready',
    help: 'Whether a role of this process is ready (1) or not (0), as /readyz says.',
    labelNames: ['role'] as const,
    registers: [registry],
    collect() {
      for (const [role, state] of Object.entries(roles)) this.set({ role }, state().ready ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_role_impaired',
    help: 'Always 1, for each reason that keeps a role of this process from doing its work now; absent while it works.',
    labelNames: ['role', 'reason'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const [role, state] of Object.entries(roles)) {
        for (const { reason } of state().impairments) this.set({ role, reason }, 1);
      }
    },
  });
}
