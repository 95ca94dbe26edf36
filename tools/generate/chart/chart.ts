import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { VERSION } from '../../../src/config/version.ts';
import { describeCrd } from '../../../src/kube/definitions/crds.ts';
import type { GeneratedFile } from '../generate.ts';
import { redisClientCertificate, servedCertificate } from '../manifests/certificates.ts';
import { podMonitor } from '../manifests/monitoring.ts';
import { networkPolicyOf, redisNetworkPolicy } from '../manifests/network-policies.ts';
import { redisObjects } from '../manifests/redis.ts';
import { httpRouteOf, ingressOf, serviceOf } from '../manifests/services.ts';
import { configMap } from '../manifests/settings.ts';
import { uninstallNetworkPolicy, uninstallObjects } from '../manifests/uninstall.ts';
import { workloadObjects } from '../manifests/workloads.ts';
import { stringifyOne } from '../manifests/yaml.ts';
import { SHIPPED_POLICIES, type ShippedPolicy } from '../rbac/admission.ts';
import { roleForBindings, secretsRoleOf, serviceAccountsOf } from '../rbac/permissions.ts';
import { admissionPolicy, describeRights, roleAndBinding, serviceAccount } from '../rbac/rbac.ts';
import { ALL_IN_ONE, ROLE_DEFINITIONS, WORKLOADS, type Workload } from '../roles.ts';
import { HELM_TARGET } from './helm-target.ts';
import { block, expression, renderTemplate } from './template.ts';
import { renderSchema, renderValues, renderValuesTable } from './values-files.ts';

const FOLDER = 'charts/sluice';
const ORIGIN = 'Generated from tools/generate by tools/generate/generate.ts. Change it there.';

/** The oldest version of Kubernetes with which the chart is tested. */
const KUBE_VERSION = '>=1.32.0-0';

/** Renders the chart, except for templates that are written by hand. `others` contains the alerts and the dashboard. */
export function renderChart(others: readonly GeneratedFile[]): GeneratedFile[] {
  const textOf = (path: string) => others.find(file => file.path === path)?.text ?? '';
  return [
    { path: `${FOLDER}/Chart.yaml`, text: `# ${ORIGIN}\n${stringifyOne(chart())}` },
    { path: `${FOLDER}/values.yaml`, text: `# ${ORIGIN}\n${renderValues()}` },
    { path: `${FOLDER}/values.schema.json`, text: renderSchema() },
    { path: `${FOLDER}/README.md`, text: renderReadme() },
    { path: `${FOLDER}/files/dashboard.json`, text: textOf('config/dashboards/sluice.json') },
    template('config', [configMap(HELM_TARGET)]),
    ...crds(),
    ...rights(),
    ...[...WORKLOADS, ALL_IN_ONE].map(workloadTemplate),
    ...WORKLOADS.filter(({ serves }) => serves.length > 0).flatMap(serviceTemplates),
    template('redis/redis', redisObjects(HELM_TARGET), '$.Values.redis.embedded.enabled'),
    template(
      'redis/network-policy',
      [redisNetworkPolicy(HELM_TARGET)],
      'and $.Values.redis.embedded.enabled $.Values.networkPolicy.enabled',
    ),
    ...certificateTemplates(),
    ...uninstallTemplates(),
    template(
      'monitoring/pod-monitor',
      [podMonitor(HELM_TARGET)],
      'and $.Values.monitoring.podMonitor.enabled ($.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")',
    ),
  ];
}

function chart() {
  return {
    apiVersion: 'v2',
    name: 'sluice',
    description: 'Distributes event streams to integration partners.',
    type: 'application',
    version: VERSION,
    appVersion: VERSION,
    kubeVersion: KUBE_VERSION,
    keywords: ['events', 'webhooks', 'cloudevents', 'redis'],
    annotations: { 'artifacthub.io/license': 'Apache-2.0' },
  };
}

function template(name: string, objects: readonly object[], condition?: string): GeneratedFile {
  const text = renderTemplate(objects.map(withChartLabels), condition);
  return { path: `${FOLDER}/templates/${name}.yaml`, text: `{{- /* ${ORIGIN} */}}\n${text}` };
}

/** Adds labels that are only used by Helm. Objects without labels (the kinds) are not changed. */
function withChartLabels(object: object): object {
  const { metadata } = object as { metadata: { labels?: object } };
  if (metadata.labels === undefined) return object;
  const labels = {
    ...metadata.labels,
    'app.kubernetes.io/managed-by': expression('$.Release.Service'),
    'app.kubernetes.io/version': expression('$.Chart.AppVersion | quote'),
    'helm.sh/chart': expression('printf "%s-%s" $.Chart.Name $.Chart.Version'),
  };
  return { ...object, metadata: { ...metadata, labels } };
}

function crds(): GeneratedFile[] {
  return Object.values(KINDS).map(kind => {
    const { metadata, ...crd } = describeCrd(kind);
    const kept = block('if $.Values.crds.keep', { 'helm.sh/resource-policy': 'keep' });
    const object = { ...crd, metadata: { ...metadata, annotations: { ...metadata.annotations, ...kept } } };
    return template(`crds/${kind.plural}`, [object], '$.Values.crds.enabled');
  });
}

/** The condition for all objects of a role, if the role is optional. */
const conditionOf = (name: Workload['name']) => (name === 'facade' ? '$.Values.facade.enabled' : undefined);

function rights(): GeneratedFile[] {
  const { 'service-accounts': _, 'admission-policies': __, users = [], ...files } = describeRights(HELM_TARGET);
  return [
    template('rights/users', users.map(aggregated)),
    ...SHIPPED_POLICIES.map(policy =>
      template(`rights/policies/${policy.name}`, admissionPolicy(policy, HELM_TARGET), conditionOfPolicy(policy)),
    ),
    ...Object.entries(files).map(([name, objects]) =>
      template(
        `rights/${name}`,
        objects.filter(object => !bindsSecrets(object)),
        conditionOf(name as Workload['name']),
      ),
    ),
    template(
      'rights/secrets-cluster',
      Object.values(files).flat().filter(bindsSecrets),
      'eq $.Values.secrets.access "cluster"',
    ),
    template(
      'rights/secrets-namespaced',
      roleAndBinding(roleForBindings(HELM_TARGET), HELM_TARGET),
      NAMESPACED_SECRETS,
    ),
  ];
}

function bindsSecrets(object: object): boolean {
  const { kind, metadata } = object as { kind: string; metadata: { name: string } };
  return kind === 'ClusterRoleBinding' && metadata.name === secretsRoleOf(HELM_TARGET);
}

const NAMESPACED_SECRETS = 'eq $.Values.secrets.access "namespaced"';

/**
 * The condition for a policy, if the policy is optional. The controller and the facade share an account in the mode
 * `all`.
 */
function conditionOfPolicy({ role, apart, namespacedSecrets }: ShippedPolicy): string | undefined {
  if (namespacedSecrets) return NAMESPACED_SECRETS;
  const shared = 'and (eq $.Values.mode "all") $.Values.facade.enabled';
  if (role === 'all') return shared;
  if (role === 'facade') return apart ? 'and (eq $.Values.mode "roles") $.Values.facade.enabled' : conditionOf(role);
  return apart ? `not (${shared})` : undefined;
}

/** The Kubernetes roles that include each user role. */
const AGGREGATED: Readonly<Record<string, readonly string[]>> = {
  '-tenant-edit': ['admin', 'edit'],
  '-tenant-view': ['admin', 'edit', 'view'],
};

function aggregated(role: object): object {
  const { metadata } = role as { metadata: { name: string; labels: object } };
  const suffix = Object.keys(AGGREGATED).find(end => metadata.name.endsWith(end)) ?? '';
  const labels = (AGGREGATED[suffix] ?? []).map(to => [`rbac.authorization.k8s.io/aggregate-to-${to}`, 'true']);
  if (labels.length === 0) return role;
  const added = block('if $.Values.rbac.aggregate', Object.fromEntries(labels));
  return { ...role, metadata: { ...metadata, labels: { ...metadata.labels, ...added } } };
}

function workloadTemplate(workload: Workload): GeneratedFile {
  const { name, token } = workload;
  const account =
    serviceAccountsOf(HELM_TARGET)[ROLE_DEFINITIONS.findIndex(role => role.name === name)] ??
    ({ name: `${HELM_TARGET.prefix}-${name}`, description: workload.description, token } as const);
  const objects = [serviceAccount(account, HELM_TARGET), ...workloadObjects(workload, HELM_TARGET)];
  const mode = `eq $.Values.mode "${name === 'all' ? 'all' : 'roles'}"`;
  const also = conditionOf(name);
  const policy = withChartLabels(networkPolicyOf(workload, HELM_TARGET));
  const file = template(`workloads/${name}`, objects, also === undefined ? mode : `and (${mode}) ${also}`);
  const optional = `{{- if $.Values.networkPolicy.enabled }}\n---\n${renderTemplate([policy])}{{- end }}\n{{- end }}\n`;
  return { ...file, text: file.text.replace(/\{\{- end \}\}\n$/, optional) };
}

function serviceTemplates(role: Workload): GeneratedFile[] {
  const { name, serves } = role;
  const [port] = serves;
  if (port === undefined) return [];
  const also = conditionOf(name);
  const exposedAs = (type: string) => `and (eq $.Values.${name}.expose.type "${type}") ${also ?? 'true'}`;
  return [
    template(`services/${name}`, [serviceOf(role, port, HELM_TARGET)], also),
    template(`services/${name}-ingress`, [ingressOf(role, port, HELM_TARGET)], exposedAs('Ingress')),
    template(`services/${name}-route`, [httpRouteOf(role, port, HELM_TARGET)], exposedAs('HTTPRoute')),
  ];
}

/**
 * Returns the templates of the Certificates. They are optional because the Secrets can also be created in another way.
 */
function certificateTemplates(): GeneratedFile[] {
  const wanted = (issuerRef: string) =>
    `and $.Values.${issuerRef} ($.Capabilities.APIVersions.Has "cert-manager.io/v1")`;
  const facade = `${wanted('facade.tls.issuerRef')} ${conditionOf('facade')}`;
  return [
    template('certificates/ingress', [servedCertificate('ingress', HELM_TARGET)], wanted('ingress.tls.issuerRef')),
    template('certificates/facade', [servedCertificate('facade', HELM_TARGET)], facade),
    template('certificates/redis-client', [redisClientCertificate(HELM_TARGET)], wanted('redis.tls.clientIssuerRef')),
  ];
}

/**
 * Hooks are created in the order of their weight. They are removed if all of them succeed. Otherwise, the Job is kept
 * for troubleshooting.
 */
function uninstallTemplates(): GeneratedFile[] {
  const asHook = (object: object, weight: number) => {
    const { metadata } = object as { metadata: { annotations?: object } };
    const annotations = {
      ...metadata.annotations,
      'helm.sh/hook': 'pre-delete',
      'helm.sh/hook-weight': String(weight),
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
      'helm.sh/hook-output-log-policy': 'hook-succeeded,hook-failed',
    };
    return { ...object, metadata: { ...metadata, annotations } };
  };
  const objects = uninstallObjects(HELM_TARGET);
  const policy = asHook(uninstallNetworkPolicy(HELM_TARGET), 0);
  return [
    template('uninstall/job', objects.map(asHook), '$.Values.uninstall.enabled'),
    template('uninstall/network-policy', [policy], 'and $.Values.uninstall.enabled $.Values.networkPolicy.enabled'),
  ];
}

function renderReadme(): string {
  const intro = readFileSync(join(import.meta.dirname, 'readme.md'), 'utf8');
  return `<!-- ${ORIGIN} -->\n\n${intro}\n## Values\n\n${renderValuesTable()}\n`;
}
