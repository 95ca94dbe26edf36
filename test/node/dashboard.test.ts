import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createAuthority } from '../support/certificates.ts';
import { AUDIENCE, type Issuer, startIssuer } from '../support/issuer.ts';
import { nodeRefusal } from '../support/node-cluster/requirements.ts';
import { findProgram } from '../support/prometheus/promtool.ts';
import { type Prometheus, startPrometheus, type Target } from '../support/prometheus/server.ts';
import { registryRefusal } from '../support/registry/registry.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';
import { type Platform, startPlatform } from './platform.ts';
import { deliverEvent, publisherTo } from './samples.ts';

const command = findProgram('prometheus');
const noPrometheus =
  command === undefined ? 'prometheus not found: test/support/prometheus/install.sh downloads it' : undefined;
const refusal = nodeRefusal() ?? (await registryRefusal()) ?? noPrometheus;
if (refusal !== undefined) process.stderr.write(`\nSKIPPED: the dashboard with real pods, because ${refusal}\n\n`);

const ROLES = ['controller', 'facade', 'ingress', 'dispatcher'];
const NAMESPACE = 'sluice-system';
const SERVICE = { name: 'sluice-ingress', namespace: NAMESPACE };
const SCRAPE_SECONDS = 2;
/** For `$__rate_interval`, Grafana uses at least four times the interval between two scrapes. */
const RATE_INTERVAL = `${4 * SCRAPE_SECONDS}s`;
const SETTLED = { timeout: 90_000, interval: 500 };

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

interface PodMonitor {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly podMetricsEndpoints: readonly [{ readonly port: string }];
  };
}

interface PrometheusRule {
  readonly spec: { readonly groups: readonly object[] };
}

interface Pod {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly containers: readonly { readonly ports?: readonly { readonly name: string; containerPort: number }[] }[];
  };
  readonly status: { readonly podIP: string };
}

describe.skipIf(refusal !== undefined)('Prometheus with the PodMonitor and the alerts of the chart', () => {
  let platform: Platform;
  let issuer: Issuer;
  let folder: TemporaryFolder;
  let prometheus: Prometheus;
  let monitor: PodMonitor;
  let targets: readonly Target[];

  const values = () => ({
    image: { registry: platform.registry.host },
    allowedNetworks: [`${platform.node.network.host}/32`],
    redis: { embedded: { enabled: true } },
    oidc: { issuers: [issuer.url], audience: AUDIENCE },
    trust: { configMap: 'authorities' },
    monitoring: {
      podMonitor: { enabled: true },
      prometheusRule: { enabled: true },
      dashboards: { enabled: true },
    },
    ...Object.fromEntries(ROLES.map(role => [role, { replicas: 1 }])),
  });

  /** Returns the objects created by the chart if the Prometheus Operator is installed in the cluster. */
  async function render<T>(kind: string): Promise<T> {
    const args = [
      'template',
      'sluice',
      ...platform.chart,
      `-n=${NAMESPACE}`,
      '--api-versions=monitoring.coreos.com/v1',
    ];
    const objects = parseAllDocuments(await platform.helm(args, { ...values(), rootKey: { existingSecret: 'root' } }));
    return objects.map(document => document.toJS() as { kind: string } | null).find(each => each?.kind === kind) as T;
  }

  /** Returns the targets that the Prometheus Operator would scrape. */
  async function targetsOf({ metadata, spec }: PodMonitor): Promise<Target[]> {
    const selector = Object.entries(spec.selector.matchLabels).map(([label, value]) => `${label}=${value}`);
    const args = ['get', 'pods', `-n=${NAMESPACE}`, `-l=${selector.join()}`, '-o=json'];
    const { items } = JSON.parse(await platform.kubectl(args)) as { readonly items: readonly Pod[] };
    return items.flatMap(({ metadata: { name }, spec: { containers }, status }) =>
      containers
        .flatMap(({ ports = [] }) => ports)
        .filter(({ name: port }) => port === spec.podMetricsEndpoints[0].port)
        .map(({ containerPort }) => ({
          targets: [`${status.podIP}:${containerPort}`],
          labels: { namespace: NAMESPACE, pod: name, job: `${NAMESPACE}/${metadata.name}` },
        })),
    );
  }

  beforeAll(async () => {
    [platform, folder] = await Promise.all([startPlatform(), temporaryFolder('dashboard')]);
    const { host } = platform.node.network;
    const authority = await createAuthority(folder.path);
    issuer = await startIssuer(0, await authority.issue('issuer', `IP:${host}`), host);
    await platform.kubectl(['create', 'namespace', NAMESPACE]);
    const authorities = ['configmap', 'authorities', `--from-file=ca.crt=${authority.ca}`];
    await platform.kubectl(['create', `-n=${NAMESPACE}`, ...authorities]);
    await platform.helm(['install', 'sluice', ...platform.chart, `-n=${NAMESPACE}`], values());
    await platform.kubectl(['rollout', 'status', 'deployment', `-n=${NAMESPACE}`, '--timeout=3m']);
    monitor = await render<PodMonitor>('PodMonitor');
    const { groups } = (await render<PrometheusRule>('PrometheusRule')).spec;
    targets = await targetsOf(monitor);
    prometheus = await startPrometheus({ command: command ?? '', targets, groups, everySeconds: SCRAPE_SECONDS });
  });
  afterAll(async () => {
    await prometheus?.stop();
    await issuer?.close();
    await platform?.stop();
    await folder?.remove();
  });

  async function queries(): Promise<{ readonly title: string; readonly expr: string }[]> {
    const args = ['get', 'configmap', 'sluice-dashboard', `-n=${NAMESPACE}`, '-o=jsonpath={.data.sluice\\.json}'];
    const { panels } = JSON.parse(await platform.kubectl(args)) as Dashboard;
    const job = `${NAMESPACE}/${monitor.metadata.name}`;
    return panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({
        title,
        expr: expr
          .replaceAll('$namespace', NAMESPACE)
          .replaceAll('$job', job)
          .replaceAll('$__rate_interval', RATE_INTERVAL),
      })),
    );
  }

  test('every panel has data while events are delivered', { timeout: 240_000 }, async () => {
    await deliverEvent(platform, SERVICE);
    const publish = await publisherTo(platform, SERVICE);
    const address = ['get', 'service', 'sluice-facade', `-n=${NAMESPACE}`, '-o=jsonpath={.spec.clusterIP}'];
    const facade = `http://${await platform.kubectl(address)}/waas/streams`;
    const all = await queries();
    expect(targets).toHaveLength(ROLES.length);
    expect(all.length).toBeGreaterThan(40);
    const empty = async () => {
      for (const groupKey of ['customer-42', 'customer-8']) await publish({ id: randomUUID(), groupKey });
      expect((await fetch(facade)).status).toBe(401);
      const found = await Promise.all(all.map(async query => ({ ...query, data: await prometheus.query(query.expr) })));
      return found.filter(({ data }) => data.every(Number.isNaN)).map(({ title, expr }) => `${title}: ${expr}`);
    };
    await expect.poll(empty, SETTLED).toEqual([]);
  });

  test('every alert can be evaluated, and no alert is active', { timeout: 120_000 }, async () => {
    const rules = await prometheus.rules();
    expect(rules.length).toBeGreaterThan(30);
    const others = async () =>
      (await prometheus.rules()).filter(({ health, state }) => health !== 'ok' || state !== 'inactive');
    await expect.poll(others, SETTLED).toEqual([]);
  });
});
