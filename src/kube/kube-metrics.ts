import { Counter, type Registry } from '../telemetry/metrics.ts';
import { createPlainHistogram } from '../telemetry/plain-histogram.ts';

/** KubeMetrics holds the functions called by the client to record metrics. */
export interface KubeMetrics {
  /** Called after each attempt, with a status of 0 if there was no response. */
  readonly answered: (method: string, status: number, seconds: number) => void;
}

/** Registers metrics for requests to the API server, named as in client-go. */
export function createKubeMetrics(registry: Registry): KubeMetrics {
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Number of API server requests, by method and status code (`<error>` if there was no response). Watches are counted when started.',
    labelNames: ['method', 'code'] as const,
    registers: [registry],
  });
  for (const method of ['GET', 'PATCH']) requests.inc({ method, code: '200' }, 0);
  const duration = createPlainHistogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Duration of API server requests in seconds. For watches, only the time taken to start is included.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  });
  return {
    answered(method, status, seconds) {
      requests.inc({ method, code: status === 0 ? '<error>' : `${status}` });
      duration.observe(seconds);
    },
  };
}
