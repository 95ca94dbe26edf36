import { Histogram, type Registry } from '../telemetry/metrics.ts';

/** What the facade counts. */
export function createFacadeMetrics(registry: Registry) {
  return {
    requestSeconds: new Histogram({
      name: 'sluice_facade_request_duration_seconds',
      help: 'Time from a call of /waas to its answer, by route and status.',
      labelNames: ['route', 'status'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers: [registry],
    }),
  };
}
