import { collectDefaultMetrics } from 'prom-client';
import { Gauge, type Registry } from './metrics.ts';
import type { HealthState } from './role-health.ts';

/** Registers the version and the usual metrics of a Node process. Call once a process. */
export function registerProcessMetrics(registry: Registry, version: string): void {
  new Gauge({
    name: 'sluice_build_info',
    help: 'Always 1; the labels are the versions of Sluice and Node.',
    labelNames: ['version', 'node_version'] as const,
    registers: [registry],
  }).set({ version, node_version: process.version }, 1);
  // A timer measures the delay of the event loop: 50 times a second are enough.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 });
}

/** Registers the readiness of each role of this process, and what keeps it from working, as in `/readyz`. */
export function registerRoleHealth(registry: Registry, roles: Readonly<Record<string, () => HealthState>>): void {
  new Gauge({
    name: 'sluice_role_ready',
    help: 'Whether a role of this process is ready (1) or not (0), as in /readyz.',
    labelNames: ['role'] as const,
    registers: [registry],
    collect() {
      for (const [role, state] of Object.entries(roles)) this.set({ role }, state().ready ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_role_impaired',
    help: '1 for each reason that keeps a role of this process from working; absent while it works.',
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
