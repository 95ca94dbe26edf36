import { Counter, type Registry } from '../../../telemetry/metrics.ts';
import { createTally } from '../../../telemetry/tally.ts';

/** Creates the metrics for the sandbox. Sandbox requests are counted separately from production. */
export function createSandboxMetrics(registry: Registry): { readonly countRequest: (status: number) => void } {
  const requests = createTally<number>();
  const answered = new Counter({
    name: 'sluice_sandbox_requests_total',
    help: 'The number of sandbox requests, by HTTP status code (499 if the client closed the connection before the response).',
    labelNames: ['code'] as const,
    registers: [registry],
    collect() {
      requests.take((code, count) => this.inc({ code: String(code) }, count));
    },
  });
  for (const code of ['200', '202', '429']) answered.inc({ code }, 0);
  return { countRequest: status => requests.add(status) };
}
