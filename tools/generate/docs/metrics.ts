import { createAuditMetrics } from '../../../src/controller/audit/audit-metrics.ts';
import { createControllerMetrics } from '../../../src/controller/engine/controller-metrics.ts';
import { createEventMetrics } from '../../../src/controller/engine/event-metrics.ts';
import { registerLimitMetrics } from '../../../src/controller/kinds/account/limit-metrics.ts';
import { createShortages } from '../../../src/controller/kinds/account/shortages.ts';
import { createInvitationMetrics } from '../../../src/controller/kinds/integration/invitation-metrics.ts';
import { createDeliveryMetrics } from '../../../src/controller/kinds/subscription/delivery-status/delivery-metrics.ts';
import { registerLiveMetrics } from '../../../src/controller/kinds/subscription/live-metrics.ts';
import { registerRootKeyMetrics } from '../../../src/controller/root-key-metrics.ts';
import {
  createTermMetrics,
  registerObjectMetrics,
  registerRuntimeMetrics,
} from '../../../src/controller/state-metrics.ts';
import { keyRingOf } from '../../../src/core/delivery/key-ring.ts';
import { createDispatcherMetrics } from '../../../src/dataplane/dispatcher/dispatcher-metrics.ts';
import { createIngressMetrics, createPartIngressMetrics } from '../../../src/dataplane/ingress/ingress-metrics.ts';
import { createSandboxMetrics } from '../../../src/dataplane/ingress/sandbox/sandbox-metrics.ts';
import { createPartMetrics } from '../../../src/dataplane/parts/part-metrics.ts';
import { createFacadeMetrics } from '../../../src/facade/facade-metrics.ts';
import { registerBacklog } from '../../../src/hints/work-metrics.ts';
import { createKubeMetrics } from '../../../src/kube/kube-metrics.ts';
import { registerStoredMetrics } from '../../../src/part/stored/stored-metrics.ts';
import { registerWorkMetrics } from '../../../src/part/survey/work-metrics.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { createRedisMetrics, registerRedisGauges } from '../../../src/redis/redis-metrics.ts';
import { createRegistry, type Registry } from '../../../src/telemetry/metrics.ts';
import { registerProcessMetrics, registerRoleHealth } from '../../../src/telemetry/process-metrics.ts';
import { createCertificateMetrics } from '../../../src/tls/certificate-metrics.ts';
import { type Row, table } from '../markdown.ts';

/** A Redis that never responds. Only the descriptions of metrics are rendered. */
const AWAY = {
  commandsSent: () => 0,
  isReady: () => false,
  onReconnect: () => {},
  callAll: () => Promise.reject(new Error('away')),
  run: () => Promise.reject(new Error('away')),
} as unknown as RedisClient;
const SOURCES = { redis: AWAY, nowMs: () => 0 };

/** Registers the same metrics as the roles, by role. */
const REGISTER: Readonly<Record<string, (registry: Registry) => unknown>> = {
  'All processes': registry => {
    registerProcessMetrics(registry, '');
    registerRoleHealth(registry, {});
    createRedisMetrics(registry);
    registerRedisGauges(registry, AWAY, SOURCES.nowMs);
    registerWorkMetrics(registry, { ...SOURCES, survey: async () => undefined });
    createCertificateMetrics(registry);
  },
  'Controller and facade': createKubeMetrics,
  controller: registry => {
    createControllerMetrics(registry);
    createEventMetrics(registry);
    createAuditMetrics(registry);
    createInvitationMetrics(registry);
    registerLimitMetrics(registry, { sharesOf: () => new Map(), highestShareOf: () => 0 }, () => []);
    createDeliveryMetrics(registry, () => 0);
    createShortages({ registry, exists: () => true, leads: () => true, onNews: () => {} });
    registerRootKeyMetrics(registry, {
      keys: keyRingOf(new Uint8Array(32)),
      caches: { Subscription: { store: { values: () => [] } } },
      waitingFor: () => 0,
      nowMs: () => 0,
    });
    registerObjectMetrics(registry, { caches: {}, backlogsAtRisk: () => 0 });
    registerLiveMetrics(registry, () => []);
    createTermMetrics(registry);
    registerRuntimeMetrics(registry, {
      readiness: () => ({ ready: true, missing: [], leading: false, silentMs: undefined }),
      works: () => false,
    });
  },
  facade: createFacadeMetrics,
  ingress: registry => {
    createIngressMetrics(registry);
    createSandboxMetrics(registry);
    createPartIngressMetrics(registry);
  },
  dispatcher: registry => {
    createDispatcherMetrics(
      registry,
      () => 0,
      () => 0,
    );
    registerBacklog(registry, async () => undefined);
    registerStoredMetrics(registry, async () => []);
    createPartMetrics(
      registry,
      () => 0,
      () => {},
    );
  },
};

/**
 * The metrics of prom-client, which exist for every Node process. They depend on the platform, so a single sentence
 * describes them.
 */
const OF_NODE = /^(?:process|nodejs)_/;

/** Renders docs/metrics.md: the metrics of `/metrics` on SLUICE_OPS_PORT, by role. */
export async function renderMetrics(): Promise<string> {
  const sections: string[] = [];
  for (const [role, register] of Object.entries(REGISTER)) {
    const registry = createRegistry();
    register(registry);
    sections.push(`## ${role}`, table(HEAD, await rowsOf(registry)));
  }
  return [
    '# Metrics',
    'Use this page to look up a metric. Each process serves the metrics of its roles at `GET /metrics` on `SLUICE_OPS_PORT` in the Prometheus text format. To collect them, see [Telemetry](telemetry.md#metrics). To respond to an alert, see [Runbooks](runbooks.md).',
    [
      '**Labels**: There are no labels for streams, subscriptions, events, or addresses, so the number of series does not increase with usage. Only `sluice_workspace_stored_bytes` and `sluice_controller_account_limit_used_ratio` have a label for workspaces or accounts, for at most ten at a time.',
      '**First increment**: A series whose label values are not known in advance (for example status codes) appears with its first increment.',
      '**Units**: All durations are in seconds.',
      '**Node.js**: Each process also provides the default Node.js metrics: `process_*` for CPU, memory, open files, and start time, and `nodejs_*` for the event loop, garbage collection, and heap.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
    ...sections,
  ].join('\n\n');
}

const HEAD: Row = ['Metric', 'Type', 'Labels', 'Description'];

async function rowsOf(registry: Registry): Promise<Row[]> {
  const described = await registry.getMetricsAsJSON();
  return described
    .filter(({ name }) => !OF_NODE.test(name))
    .map(({ name, type, help }) => [`\`${name}\``, `${type}`, labelsOf(registry, name), help])
    .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

function labelsOf(registry: Registry, name: string): string {
  const metric: object | undefined = registry.getSingleMetric(name);
  const names = metric !== undefined && 'labelNames' in metric ? (metric.labelNames as string[]) : [];
  return names.map(label => `\`${label}\``).join(', ');
}
