import { collectDefaultMetrics } from 'prom-client';
import { Gauge, type Registry } from './metrics.ts';
import type { ReadinessCheck } from './ops-server.ts';

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

/** Whether each role of this process is ready, as `/readyz` says it. */
export function registerReadiness(registry: Registry, checks: Readonly<Record<string, ReadinessCheck>>): void {
  new Gauge({
    name: 'sluice_role_ready',
    help: 'Whether a role of this process is ready (1) or not (0), as /readyz says it.',
    labelNames: ['role'] as const,
    registers: [registry],
    collect() {
      for (const [role, check] of Object.entries(checks)) this.set({ role }, check() === undefined ? 1 : 0);
    },
  });
}
