import { Counter, Gauge, type Registry } from '../telemetry/metrics.ts';
import { createPlainHistogram } from '../telemetry/plain-histogram.ts';

/** KubeMetrics holds the functions called by the client to record metrics. */
export interface KubeMetrics {
  /** Called after each attempt. The status is 0 if there was no response. */
  readonly answered: (method: string, status: number, seconds: number) => void;
  /** Called each time the admission policies have been checked. */
  readonly policiesMissing: (role: string, missing: boolean) => void;
}

/** Registers metrics for requests to the API server, named as in client-go. */
export function createKubeMetrics(registry: Registry): KubeMetrics {
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'The number of API server requests, by method and status code (`<error>` if there was no response). Watches are counted when they start.',
    labelNames: ['method', 'code'] as const,
    registers: [registry],
  });
  for (const method of ['GET', 'PATCH']) requests.inc({ method, code: '200' }, 0);
  const duration = createPlainHistogram(registry, {
    name: 'rest_client_request_duration_seconds',
    help: 'The duration of API server requests in seconds. For watches, this only includes the time needed to start the watch.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  });
  const policies = new Gauge({
    name: 'sluice_admission_policies_missing',
    help: '1 if the API server accepts a dry run that the admission policies should deny for the service account of this role, and 0 otherwise. Always 0 if the role does not use a service account.',
    labelNames: ['role'] as const,
    registers: [registry],
  });
  return {
    policiesMissing: (role, missing) => policies.set({ role }, missing ? 1 : 0),
    answered(method, status, seconds) {
      requests.inc({ method, code: status === 0 ? '<error>' : `${status}` });
      duration.observe(seconds);
    },
  };
}
