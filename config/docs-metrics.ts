import { createShortages } from '../src/controller/account/shortages.ts';
import { createInvitationMetrics } from '../src/controller/integration/invitation-metrics.ts';
import { createControllerMetrics } from '../src/controller/runtime/controller-metrics.ts';
import { createAuditMetrics } from '../src/controller/tenant/audit-metrics.ts';
import { createDispatcher, type DispatcherOptions } from '../src/dataplane/dispatcher/dispatcher.ts';
import { createIngressMetrics } from '../src/dataplane/ingress/ingress-metrics.ts';
import { createRouter, type RouterOptions } from '../src/dataplane/router/router.ts';
import { createFacadeMetrics } from '../src/facade/facade-metrics.ts';
import { createRegistry, type Registry } from '../src/telemetry/metrics.ts';
import { type Row, table } from './markdown.ts';

// The roles register their metrics when they are made. Neither is started here, so none of what is left out is used.
const REGISTER: Readonly<Record<string, (registry: Registry) => unknown>> = {
  controller: registry => {
    createControllerMetrics(registry);
    createAuditMetrics(registry);
    createInvitationMetrics(registry);
    createShortages({ registry, exists: () => true, onNews: () => {} });
  },
  facade: registry => createFacadeMetrics(registry),
  ingress: registry => createIngressMetrics(registry),
  router: registry => createRouter({ registry, inboxHints: {}, queueHints: {} } as unknown as RouterOptions),
  dispatcher: registry =>
    createDispatcher({ registry, client: {}, inboxes: {}, hints: {} } as unknown as DispatcherOptions),
};

/** What every process has, whichever roles it runs: registered in src/main.ts. */
const EVERYWHERE: Row = [
  '`sluice_redis_commands_total`',
  'counter',
  '',
  'Commands sent to Redis; a script counts as one.',
];

/** docs/metrics.md: what `/metrics` on SLUICE_OPS_PORT gives, by role. */
export async function renderMetrics(): Promise<string> {
  const sections: string[] = [];
  for (const [role, register] of Object.entries(REGISTER)) {
    const registry = createRegistry();
    register(registry);
    sections.push(`## ${role}`, table(HEAD, await rowsOf(registry)));
  }
  return [
    '# Metrics',
    'Every process answers `GET /metrics` on `SLUICE_OPS_PORT` in the text format of Prometheus, with the metrics of the roles that it runs. Counters with labels appear with their first increment. Times are in seconds.',
    '## Every process',
    table(HEAD, [EVERYWHERE]),
    ...sections,
  ].join('\n\n');
}

const HEAD: Row = ['Metric', 'Type', 'Labels', 'Meaning'];

async function rowsOf(registry: Registry): Promise<Row[]> {
  const described = await registry.getMetricsAsJSON();
  return described
    .map(({ name, type, help }) => [`\`${name}\``, `${type}`, labelsOf(registry, name), help])
    .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

function labelsOf(registry: Registry, name: string): string {
  const metric: object | undefined = registry.getSingleMetric(name);
  const names = metric !== undefined && 'labelNames' in metric ? (metric.labelNames as string[]) : [];
  return names.map(label => `\`${label}\``).join(', ');
}
