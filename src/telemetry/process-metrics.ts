import { collectDefaultMetrics } from 'prom-client';
import { Gauge, type Registry } from './metrics.ts';
import { type HealthState, IMPAIRMENTS, type ImpairmentReason } from './role-health.ts';

/** Registers the version, and the default metrics for a Node process. Must only be called once per process. */
export function registerProcessMetrics(registry: Registry, version: string): void {
  new Gauge({
    name: 'sluice_build_info',
    help: 'Constant 1, with labels for the Sluice and Node versions.',
    labelNames: ['version', 'node_version'] as const,
    registers: [registry],
  }).set({ version, node_version: process.version }, 1);
  // A timer measures the event loop delay. 50 times a second should be enough.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 });
}

const REASONS = Object.keys(IMPAIRMENTS) as ImpairmentReason[];

/**
 * Registers metrics that show whether each role in this process is ready, and what prevents it from working (as in
 * `/readyz`).
 */
export function registerRoleHealth(registry: Registry, roles: Readonly<Record<string, () => HealthState>>): void {
  new Gauge({
    name: 'sluice_role_ready',
    help: 'The readiness of each role in this process: 1 if the role is ready and 0 otherwise, as reported by /readyz.',
    labelNames: ['role'] as const,
    registers: [registry],
    collect() {
      for (const [role, state] of Object.entries(roles)) this.set({ role }, state().ready ? 1 : 0);
    },
  });
  new Gauge({
    name: 'sluice_role_impaired',
    help: '1 if a role in this process is currently unable to work for this reason, and 0 otherwise.',
    labelNames: ['role', 'reason'] as const,
    registers: [registry],
    collect() {
      for (const [role, state] of Object.entries(roles)) {
        const reasons = new Set(state().impairments.map(({ reason }) => reason));
        for (const reason of REASONS) this.set({ role, reason }, reasons.has(reason) ? 1 : 0);
      }
    },
  });
}
