import { createLabeledCounter, type Registry } from '../../../telemetry/metrics.ts';

/** Creates the metrics for the sandbox. Sandbox requests are counted separately from production. */
export function createSandboxMetrics(registry: Registry): { readonly countRequest: (status: number) => void } {
  const answered = createLabeledCounter<number>(registry, {
    name: 'sluice_sandbox_requests_total',
    help: 'The number of sandbox requests, by HTTP status code (499 if the client closed the connection before the response).',
    label: 'code',
    known: [200, 202, 429],
  });
  return { countRequest: status => answered(status) };
}
