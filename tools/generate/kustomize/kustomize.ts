import { VERSION } from '../../../src/config/version.ts';
import { Values } from '../chart/values/values.ts';
import type { GeneratedFile } from '../generate.ts';
import { DEFAULT_INSTALLATION } from '../installation.ts';
import { podMonitor } from '../manifests/monitoring.ts';
import { systemNamespace } from '../manifests/namespace.ts';
import { networkPolicyOf, redisNetworkPolicy } from '../manifests/network-policies.ts';
import { createPlainTarget } from '../manifests/plain-target.ts';
import { redisObjects } from '../manifests/redis.ts';
import { redisFileMounts, redisFileVariables, redisFileVolumes } from '../manifests/redis-files.ts';
import { httpRouteOf, serviceOf } from '../manifests/services.ts';
import { configMap } from '../manifests/settings.ts';
import { uninstallObjects } from '../manifests/uninstall.ts';
import { workloadObjects } from '../manifests/workloads.ts';
import { stringifyAll } from '../manifests/yaml.ts';
import { SHIPPED_POLICIES } from '../rbac/admission.ts';
import { roleForBindings, secretsRoleOf } from '../rbac/permissions.ts';
import { admissionPolicy, roleAndBinding } from '../rbac/rbac.ts';
import type { RedisUser } from '../redis/rights.ts';
import { ROLE_DEFINITIONS, WORKLOADS } from '../roles.ts';
import { receiverObjects } from './receiver.ts';

const ORIGIN = '# Generated from tools/generate/manifests by tools/generate/generate.ts. Change it there.\n';
const BASE = { apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization' };
const COMPONENT = { apiVersion: 'kustomize.config.k8s.io/v1alpha1', kind: 'Component' };

/** The values of config/default. An overlay that specifies a registry replaces the image names. */
const target = createPlainTarget(Values.parse({ image: { tag: VERSION } }));

/**
 * Renders the folders for kustomize. Folders that can also be used with `kubectl apply -f` use a kustomization file
 * without an extension, which is ignored by `kubectl`.
 */
export function renderKustomize(others: readonly GeneratedFile[]): GeneratedFile[] {
  return [
    ...['crds', 'config/rbac'].map(folder => listOf(folder, others)),
    ...defaultFolder(),
    ...evaluationFolder(),
    ...monitoringFolders(),
    ...networkPolicyFolder(),
    ...gatewayFolder(),
    namespaceFolder(),
    ...uninstallFolder(),
    ...namespacedSecretsFolder(),
    redisUsersFolder(),
    ...quickstartFolder(),
  ];
}

function file(path: string, ...objects: readonly object[]): GeneratedFile {
  return { path, text: ORIGIN + stringifyAll(objects) };
}

/** Returns the kustomization of a folder written by other parts of the generator. */
function listOf(folder: string, others: readonly GeneratedFile[]): GeneratedFile {
  const inside = others.filter(({ path }) => path.startsWith(`${folder}/`) && path.endsWith('.yaml'));
  const resources = inside.map(({ path }) => path.slice(folder.length + 1));
  return file(`${folder}/Kustomization`, { ...BASE, resources });
}

function defaultFolder(): GeneratedFile[] {
  const at = 'config/default';
  const files = [
    file(`${at}/namespace.yaml`, systemNamespace(DEFAULT_INSTALLATION)),
    file(`${at}/config.yaml`, configMap(target)),
    ...WORKLOADS.map(workload =>
      file(
        `${at}/${workload.name}.yaml`,
        ...workloadObjects(workload, target),
        ...workload.serves.map(port => serviceOf(workload, port, target)),
      ),
    ),
  ];
  const resources = files.map(({ path }) => path.slice(at.length + 1));
  const [namespace = '', ...rest] = resources;
  return [
    file(`${at}/kustomization.yaml`, { ...BASE, resources: [namespace, '../../crds', '../rbac', ...rest] }),
    ...files,
  ];
}

function evaluationFolder(): GeneratedFile[] {
  const replicas = WORKLOADS.map(({ name }) => ({ name: `${DEFAULT_INSTALLATION.prefix}-${name}`, count: 1 }));
  return [
    file('config/evaluation/kustomization.yaml', { ...BASE, resources: ['../default', 'redis.yaml'], replicas }),
    file('config/evaluation/redis.yaml', ...redisObjects(target)),
  ];
}

function monitoringFolders(): GeneratedFile[] {
  const { prefix, namespace } = DEFAULT_INSTALLATION;
  const dashboard = {
    name: `${prefix}-dashboard`,
    namespace,
    files: ['sluice.json'],
    options: { disableNameSuffixHash: true, labels: { grafana_dashboard: '1' } },
  };
  const at = 'config/components/monitoring';
  return [
    file('config/alerts/Kustomization', { ...BASE, resources: ['prometheus-rule.yaml'] }),
    file('config/dashboards/Kustomization', { ...BASE, configMapGenerator: [dashboard] }),
    file(`${at}/kustomization.yaml`, {
      ...COMPONENT,
      resources: ['../../alerts', '../../dashboards', 'pod-monitor.yaml'],
    }),
    file(`${at}/pod-monitor.yaml`, podMonitor(target)),
  ];
}

function networkPolicyFolder(): GeneratedFile[] {
  const at = 'config/components/network-policy';
  const policies = [...WORKLOADS.map(workload => networkPolicyOf(workload, target)), redisNetworkPolicy(target)];
  return [
    file(`${at}/kustomization.yaml`, { ...COMPONENT, resources: ['network-policies.yaml'] }),
    file(`${at}/network-policies.yaml`, ...policies),
  ];
}

/** The hosts and the Gateway are examples. An overlay should replace them. */
function gatewayFolder(): GeneratedFile[] {
  const at = 'config/components/gateway';
  const expose = (host: string) => ({ host, parentRefs: [{ name: 'public', namespace: 'gateways' }] });
  const exposed = createPlainTarget(
    Values.parse({
      ingress: { expose: expose('events.example.com') },
      facade: { expose: expose('api.example.com') },
    }),
  );
  const routes = WORKLOADS.flatMap(workload => workload.serves.map(port => httpRouteOf(workload, port, exposed)));
  return [
    file(`${at}/kustomization.yaml`, { ...COMPONENT, resources: ['routes.yaml'] }),
    file(`${at}/routes.yaml`, ...routes),
  ];
}

/**
 * Renders the folder that replaces the namespace in the admission policies and the FlowSchema. By default, kustomize
 * does not replace it there.
 */
function namespaceFolder(): GeneratedFile {
  const limited = ROLE_DEFINITIONS.filter(({ rights }) => rights !== undefined);
  const replacements = limited.map(({ name }) => ({
    source: {
      kind: 'ServiceAccount',
      name: DEFAULT_INSTALLATION.accountOf(name),
      fieldPath: 'metadata.namespace',
    },
    targets: [
      {
        select: { kind: 'ValidatingAdmissionPolicy', name: `${DEFAULT_INSTALLATION.prefix}-${name}-.*` },
        fieldPaths: ['spec.matchConditions.0.expression'],
        // system:serviceaccount:<namespace>:<name>
        options: { delimiter: ':', index: 2 },
      },
      ...(name === 'controller'
        ? [
            {
              select: { kind: 'FlowSchema', name: `${DEFAULT_INSTALLATION.prefix}-leases` },
              fieldPaths: [
                'spec.rules.0.subjects.0.serviceAccount.namespace',
                'spec.rules.0.resourceRules.0.namespaces.0',
              ],
            },
          ]
        : []),
    ],
  }));
  return file('config/components/namespace/kustomization.yaml', { ...COMPONENT, replacements });
}

/**
 * Objects that are applied once, before or after removing Sluice. The namespace is not included because it contains the
 * root key.
 */
function uninstallFolder(): GeneratedFile[] {
  const at = 'config/uninstall';
  return [
    file(`${at}/kustomization.yaml`, { ...BASE, resources: ['job.yaml'] }),
    file(`${at}/job.yaml`, ...uninstallObjects(target)),
  ];
}

/** Replaces access to the Secrets of the whole cluster with bindings in the workspace namespaces. */
function namespacedSecretsFolder(): GeneratedFile[] {
  const at = 'config/components/namespaced-secrets';
  const role = secretsRoleOf(DEFAULT_INSTALLATION);
  const policies = SHIPPED_POLICIES.filter(({ namespacedSecrets }) => namespacedSecrets);
  const removed = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: role },
    $patch: 'delete',
  };
  const { prefix, namespace } = DEFAULT_INSTALLATION;
  const variable = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `${prefix}-config`, namespace },
    data: { SLUICE_SECRETS_ROLE: role },
  };
  return [
    file(`${at}/kustomization.yaml`, {
      ...COMPONENT,
      resources: ['rights.yaml'],
      patches: [removed, variable].map(patch => ({ patch: stringifyAll([patch]) })),
    }),
    file(
      `${at}/rights.yaml`,
      ...policies.flatMap(policy => admissionPolicy(policy, DEFAULT_INSTALLATION)),
      ...roleAndBinding(roleForBindings(DEFAULT_INSTALLATION), DEFAULT_INSTALLATION),
    ),
  ];
}

/**
 * Connects each role and the Job of config/uninstall with its own Redis user. The passwords are stored in a Secret that
 * is not included. A patch with a target has no effect if the target is missing.
 */
function redisUsersFolder(): GeneratedFile {
  const { prefix } = DEFAULT_INSTALLATION;
  const withUsers = createPlainTarget(Values.parse({ redis: { usersSecret: `${prefix}-redis-users` } }));
  const patchOf = (kind: string, component: RedisUser, volume: object = {}) => {
    const name = `${prefix}-${component}`;
    const container = {
      name: 'sluice',
      env: redisFileVariables(component, withUsers),
      volumeMounts: redisFileMounts(withUsers),
    };
    const spec = { containers: [container], volumes: redisFileVolumes(component, withUsers, volume) };
    return {
      target: { kind, name },
      patch: stringifyAll([{ kind, metadata: { name }, spec: { template: { spec } } }]),
    };
  };
  const patches = [
    ...WORKLOADS.map(({ name }) => patchOf('Deployment', name)),
    patchOf('Job', 'uninstall', { optional: true }),
  ];
  return file('config/components/redis-users/kustomization.yaml', { ...COMPONENT, patches });
}

/** The samples, including a receiver in the cluster. */
function quickstartFolder(): GeneratedFile[] {
  const at = 'config/quickstart';
  return [
    file(`${at}/kustomization.yaml`, { ...BASE, resources: ['../samples', 'receiver.yaml'] }),
    // The program stays readable if no line is folded.
    { path: `${at}/receiver.yaml`, text: ORIGIN + stringifyAll(receiverObjects(), 0) },
  ];
}
