import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  CHART,
  type Helm,
  type Manifest,
  openHelm,
  outputOf,
  parseObjects,
  ROOT,
  renderChart,
} from './support/helm.ts';
import { buildOverlays, REQUIRED_OVERLAY } from './support/kustomize.ts';
import { REFUSALS, REQUIRED, VALUE_SETS } from './support/value-sets.ts';

let helm: Helm;

beforeAll(async () => {
  helm = await openHelm();
});

/** Labels and annotations that only Helm writes. */
const HELM_ONLY = /^(helm\.sh\/|checksum\/|app\.kubernetes\.io\/(managed-by|version)$)/;

/** Removes fields that only Helm writes, and empty fields, which the API server treats as missing. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value)
    .filter(([name]) => !HELM_ONLY.test(name))
    .map(([name, field]) => [name, plain(field)] as const)
    .filter(([, field]) => field !== null && !(Array.isArray(field) && field.length === 0));
  return Object.fromEntries(fields);
}

const nameOf = ({ kind, metadata }: Manifest) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

function byName(objects: readonly Manifest[]): Record<string, unknown> {
  const named = objects.map(object => [nameOf(object), plain(object)] as const);
  expect(new Set(named.map(([name]) => name)).size, 'there are duplicate objects').toBe(named.length);
  return Object.fromEntries(named.toSorted(([a], [b]) => a.localeCompare(b)));
}

test('the chart with its defaults and config/default are the same objects', async () => {
  const [ofChart, ofKustomize] = await Promise.all([
    renderChart(helm, REQUIRED),
    buildOverlays({ resources: ['default'], ...REQUIRED_OVERLAY }),
  ]);
  const ofRelease = ofChart.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === undefined);
  // Helm creates the namespace by a flag.
  const expected = byName(ofKustomize.filter(({ kind }) => kind !== 'Namespace'));
  expect(Object.keys(expected).length).toBeGreaterThan(40);
  expect(byName(ofRelease)).toEqual(expected);
});

type Named = readonly { readonly name: string }[];

interface Pods extends Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly volumes?: Named;
        readonly containers: readonly { readonly env?: Named; readonly volumeMounts?: Named }[];
      };
    };
  };
}

test('redis.usersSecret and config/components/redis-users connect with the same users', async () => {
  const { images } = REQUIRED_OVERLAY;
  const [ofChart, ...ofKustomize] = await Promise.all([
    renderChart(helm, { ...REQUIRED, redis: { existingSecret: 'sluice-redis', usersSecret: 'sluice-redis-users' } }),
    buildOverlays({ resources: ['default'], ...REQUIRED_OVERLAY }, { components: ['components/redis-users'] }),
    buildOverlays({ resources: ['uninstall'], images }, { components: ['components/redis-users'] }),
  ]);
  // Sorts the lists of a pod because a patch adds items to the start.
  const pods = (objects: readonly Manifest[]) => {
    const found = objects.filter(({ kind }) => kind === 'Deployment' || kind === 'Job') as Pods[];
    const entries = found.map(({ metadata, spec: { template } }) => {
      const { containers, volumes = [] } = template.spec;
      const lists = [volumes, containers[0]?.env ?? [], containers[0]?.volumeMounts ?? []];
      return [metadata.name, lists.map(list => list.toSorted((a, b) => a.name.localeCompare(b.name)))] as const;
    });
    return Object.fromEntries(entries);
  };
  expect(Object.keys(pods(ofChart))).toHaveLength(5);
  expect(pods(ofChart)).toEqual(pods(ofKustomize.flat()));
});

test('the hook of the chart and config/uninstall are the same objects', async () => {
  const [ofChart, ofKustomize] = await Promise.all([
    renderChart(helm, REQUIRED),
    buildOverlays({ resources: ['uninstall'], images: REQUIRED_OVERLAY.images }),
  ]);
  const hooks = ofChart.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === 'pre-delete');
  const expected = byName(ofKustomize);
  expect(Object.keys(expected)).toHaveLength(6);
  expect(byName(hooks)).toEqual(expected);
  // The permissions for removing finalizers are created before the Job.
  const weights = hooks.map(({ kind, metadata }) => [kind, Number(metadata.annotations?.['helm.sh/hook-weight'])]);
  expect(weights.toSorted(([, a], [, b]) => Number(a) - Number(b)).at(-1)).toEqual(['Job', 5]);
});

test('every pod can be moved to tainted nodes, and have the limits that a ResourceQuota requires', async () => {
  const resources = { limits: { cpu: '1' } };
  const placed = { nodeSelector: { pool: 'events' }, tolerations: [{ key: 'events', operator: 'Exists' }] };
  const given = { ...placed, resources };
  const roles = Object.fromEntries(['controller', 'facade', 'ingress', 'dispatcher'].map(name => [name, given]));
  const redis = { embedded: { enabled: true, ...given } };
  const values = { ...REQUIRED, ...roles, redis, uninstall: given, test: given };
  const objects = parseObjects(outputOf(await helm(['template', 'sluice', CHART], { values })));
  const pods = objects.flatMap(({ kind, spec }) => {
    if (kind === 'Pod') return [spec];
    return ['Deployment', 'StatefulSet', 'Job'].includes(kind) ? [(spec as Pods['spec']).template.spec] : [];
  });
  expect(pods).toHaveLength(7);
  for (const pod of pods) expect(pod).toMatchObject({ ...placed, containers: [{ resources }] });
});

test('the Job of the hook ignores undelivered events only if the value is set', async () => {
  const argsOf = async (uninstall: object) => {
    const objects = await renderChart(helm, { ...REQUIRED, uninstall });
    return ofKind<Workload>(objects, 'Job').map(({ spec }) => spec.template.spec.containers[0]?.args);
  };
  expect(await argsOf({})).toEqual([['uninstall']]);
  expect(await argsOf({ ignoreUndelivered: true })).toEqual([['uninstall', '--ignore-undelivered']]);
  expect(await argsOf({ enabled: false })).toEqual([]);
});

test('docs/install.md: the Job can be changed for undelivered events, and for another installation', async () => {
  const page = await readFile(join(ROOT, 'docs', 'install.md'), 'utf8');
  const [, section = ''] = page.split('\n### Remove the finalizers\n');
  const blocks = [...(section.split('\n## ')[0] ?? '').matchAll(/```yaml\n([\s\S]*?)```/g)];
  const jobs = await Promise.all(
    blocks.map(async ([, text = '']) =>
      ofKind<Workload>(await buildOverlays({ resources: ['uninstall'], ...(parse(text) as object) }), 'Job'),
    ),
  );
  expect(jobs).toHaveLength(2);
  const [[ignoring], [ofBlue]] = jobs as [Workload[], Workload[]];
  expect(ignoring?.spec.template.spec.containers[0]?.args).toEqual(['uninstall', '--ignore-undelivered']);
  expect(ofBlue?.metadata.namespace).toBe('blue-system');
  expect(ofBlue?.spec.template.spec.containers[0]).toMatchObject({
    env: expect.arrayContaining([{ name: 'SLUICE_INSTANCE', value: 'blue' }]) as unknown,
  });
});

test('the linter does not report anything', async () => {
  const { code, stdout } = await helm(['lint', '--strict', CHART], { values: REQUIRED });
  expect(stdout).not.toMatch(/\[(WARNING|ERROR)\]/);
  expect(code).toBe(0);
});

describe('wrong values', () => {
  test.each(REFUSALS)('%s: the error says what to change', async (_, values, sentence) => {
    const { code, stderr } = await helm(['template', 'sluice', CHART], { values });
    expect(stderr).toMatch(sentence);
    expect(code).not.toBe(0);
  });

  test.each(['2026', 'events.blue'])('a release cannot be named %s', async name => {
    const { code, stderr } = await helm(['template', name, CHART], { values: REQUIRED });
    expect(stderr).toContain(`the release is named "${name}", but names of Services must start with a letter`);
    expect(code).not.toBe(0);
  });

  test('all contradictions are reported together', async () => {
    const { stderr } = await helm(['template', 'sluice', CHART]);
    expect(stderr.match(/^- /gm)).toHaveLength(3);
  });
});

interface Workload extends Manifest {
  readonly spec: {
    readonly replicas: number;
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template: {
      readonly metadata: Manifest['metadata'];
      readonly spec: {
        readonly serviceAccountName: string;
        readonly automountServiceAccountToken: boolean;
        readonly terminationGracePeriodSeconds: number;
        readonly topologySpreadConstraints: readonly object[];
        readonly containers: readonly { readonly image: string; readonly args: readonly string[] }[];
      };
    };
  };
}

const ofKind = <Kind extends Manifest = Manifest>(objects: readonly Manifest[], kind: string) =>
  objects.filter(object => object.kind === kind) as Kind[];

test('a Deployment does not contain the number of pods if an autoscaler changes it', async () => {
  const objects = await renderChart(helm, VALUE_SETS['a load balancer and an autoscaler'] ?? {});
  const replicas = ofKind<Workload>(objects, 'Deployment').map(({ metadata, spec }) => [metadata.name, spec.replicas]);
  expect(Object.fromEntries(replicas)).toEqual({
    'sluice-controller': 2,
    'sluice-dispatcher': 2,
    'sluice-facade': undefined,
    'sluice-ingress': undefined,
  });
});

test('a parent chart can disable it with a condition', async () => {
  const folder = await temporaryFolder('parent');
  const dependencies = [{ name: 'sluice', version: packageJson.version, condition: 'sluice.enabled' }];
  const parent = { apiVersion: 'v2', name: 'parent', version: '1.0.0', dependencies };
  await cp(CHART, join(folder.path, 'charts', 'sluice'), { recursive: true });
  await writeFile(join(folder.path, 'Chart.yaml'), JSON.stringify(parent));
  const kinds = async (enabled: boolean) => {
    const values = { sluice: { ...REQUIRED, enabled } };
    const output = outputOf(await helm(['template', 'events', folder.path, '--skip-tests'], { values }));
    return parseObjects(output).map(({ kind }) => kind);
  };
  expect(await kinds(true)).toContain('Deployment');
  expect(await kinds(false)).toEqual([]);
});

test('the pods of a new version are spread over the nodes without counting the pods of the old version', async () => {
  const objects = await renderChart(helm, REQUIRED);
  const constraints = ofKind<Workload>(objects, 'Deployment').flatMap(
    ({ spec }) => spec.template.spec.topologySpreadConstraints,
  );
  expect(constraints).toHaveLength(8);
  for (const each of constraints) expect(each).toMatchObject({ matchLabelKeys: ['pod-template-hash'] });
});

test('names that consist of digits are rendered as text', async () => {
  const values = { ...REQUIRED, fullnameOverride: 'events' };
  for (const { metadata } of await renderChart(helm, values, { release: '2026', namespace: '11' })) {
    expect(metadata.namespace ?? '11').toBe('11');
    expect(metadata.labels?.['app.kubernetes.io/instance'] ?? '2026').toBe('2026');
  }
});

describe('a release under another name and namespace', () => {
  const elsewhere = { release: 'blue', namespace: 'events' };

  test.each(Object.entries(VALUE_SETS))('%s: no object has the name of another installation', async (_, values) => {
    const objects = await renderChart(helm, values, elsewhere);
    const given = { ...REQUIRED, redis: values['redis'] };
    const text = JSON.stringify(objects.filter(({ kind }) => kind !== 'CustomResourceDefinition'))
      .replaceAll(/"resourceNames":\["sluice-controller"\]/g, '')
      // Each installation has a separate Redis.
      .replaceAll(/"SLUICE_REDIS_USERNAME","value":"sluice-\w+"/g, '')
      .replaceAll(given.rootKey.existingSecret, '')
      .replaceAll(REQUIRED.redis.existingSecret, '');
    expect(text).not.toMatch(/(?<![-/\w])sluice-(system|controller|facade|ingress|dispatcher|redis|config)/);
    expect(objects.every(({ metadata }) => [undefined, 'events'].includes(metadata.namespace))).toBe(true);
  });

  test.each(Object.entries(VALUE_SETS))(
    '%s: the policies limit the accounts of the pods that have a token',
    async (_, values) => {
      const objects = await renderChart(helm, values, elsewhere);
      const users = ofKind<Workload>(objects, 'Deployment')
        .map(({ spec }) => spec.template.spec)
        .filter(({ automountServiceAccountToken }) => automountServiceAccountToken)
        .map(({ serviceAccountName }) => `system:serviceaccount:events:${serviceAccountName}`);
      const held = JSON.stringify(ofKind(objects, 'ValidatingAdmissionPolicy'));
      expect(users.length).toBeGreaterThan(0);
      for (const user of users) expect(held).toContain(`request.userInfo.username == '${user}'`);
      const accounts = ofKind(objects, 'ServiceAccount').map(({ metadata }) => metadata.name);
      for (const user of users) expect(accounts).toContain(user.split(':').at(-1));
    },
  );
});

describe.each(Object.entries(VALUE_SETS))('%s', (_, values) => {
  test('every Service, budget and policy selects the pods of one workload', async () => {
    const objects = await renderChart(helm, values);
    const pods = ['Deployment', 'StatefulSet', 'Job']
      .flatMap(kind => ofKind<Workload>(objects, kind))
      .map(({ spec }) => spec.template.metadata.labels ?? {});
    const selectors = [
      ...ofKind(objects, 'Service').map(({ spec }) => (spec as { selector: object }).selector),
      ...ofKind<Workload>(objects, 'PodDisruptionBudget').map(({ spec }) => spec.selector.matchLabels),
      ...ofKind(objects, 'NetworkPolicy').map(
        ({ spec }) => (spec as { podSelector: { matchLabels: object } }).podSelector.matchLabels,
      ),
    ];
    expect(selectors.length).toBeGreaterThan(1);
    for (const selector of selectors) {
      const selected = pods.filter(labels => Object.entries(selector).every(([name, value]) => labels[name] === value));
      expect(selected, JSON.stringify(selector)).toHaveLength(1);
    }
  });
});

test('pods contain the values', async () => {
  const objects = await renderChart(helm, VALUE_SETS['production'] ?? {});
  const dispatcher = ofKind<Workload>(objects, 'Deployment').find(({ metadata }) =>
    metadata.name.endsWith('dispatcher'),
  );
  const pod = dispatcher?.spec.template.spec;
  expect(dispatcher?.spec.replicas).toBe(6);
  expect(pod?.containers[0]?.image).toBe(`registry.example.com/events/sluice@sha256:${'4b'.repeat(32)}`);
  expect(pod).toMatchObject({
    terminationGracePeriodSeconds: 45,
    automountServiceAccountToken: false,
    priorityClassName: 'system-cluster-critical',
    imagePullSecrets: [{ name: 'registry' }],
  });
  expect(ofKind(objects, 'ConfigMap')[0]?.['data']).toEqual({
    SLUICE_LOG_LEVEL: 'info',
    SLUICE_SHUTDOWN_DELAY_SECONDS: '20',
    SLUICE_FACADE_DOCS: 'true',
    SLUICE_QUEUE_MAX_BYTES: '1073741824000',
    SLUICE_INGRESS_ADDRESS_LIMIT: '900',
    SLUICE_INGRESS_KEY_LIMIT: '500',
    SLUICE_INGRESS_WORKSPACE_LIMIT: '800',
    SLUICE_INSTANCE: 'blue',
    SLUICE_ALLOWED_NETWORKS: '10.8.0.0/16',
    SLUICE_REFUSED_NETWORKS: '203.0.113.7/32,2001:db8:64::/96,10.8.3.0/24',
    SLUICE_ALLOWED_PORTS: '443,8443',
    SLUICE_ENDPOINT_CONSENT_ORIGIN: 'events.example.com',
    SLUICE_TRUSTED_PROXIES: '10.9.0.0/16,fd00::/8',
    SLUICE_FREE_LIMITS: 'eventsPerSecond=unlimited,streams=5',
    SLUICE_METERED_LIMITS: 'storedBytes=1099511627776',
    SLUICE_MAX_LIMITS: 'streams=4000',
    SLUICE_INVITED_LIMITS: 'streams=0',
    SLUICE_WORKSPACE_QUOTA: '{"count/activations.sluice.dev":"10000","count/packages.sluice.dev":100}',
    SLUICE_OIDC_ISSUERS: 'https://a.example.com,https://b.example.com',
    SLUICE_OIDC_AUDIENCE: 'sluice',
    SLUICE_OIDC_ALGORITHMS: 'ES256',
    SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: '30',
    SLUICE_INVITATION_REQUIRE_EMAIL: 'true',
    SLUICE_SMTP_FROM: 'Sluice <sluice@example.com>',
    SLUICE_INVITATION_URL: 'https://app.example.com/i',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.05',
  });
});
