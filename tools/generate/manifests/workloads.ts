import { OPS_PORT, type Workload } from '../roles.ts';
import { labelsOf } from './metadata.ts';
import { redisFileMounts, redisFileVariables, redisFileVolumes } from './redis-files.ts';
import {
  servedFileMounts,
  servedFileVariables,
  servedFileVolumes,
  trustMounts,
  trustVariables,
  trustVolumes,
} from './served-files.ts';
import type { Target } from './target.ts';

const ROOT_KEY_FOLDER = '/etc/sluice/root-key';

/** The settings required by the Pod Security Standard `restricted`. The image specifies a user that is not root. */
export const POD_SECURITY = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } };

export const CONTAINER_SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};

/** Returns the Deployment and the PodDisruptionBudget of a role. */
export function workloadObjects(workload: Workload, target: Target): readonly object[] {
  const labels = labelsOf(target, workload.name);
  const metadata = { name: `${target.prefix}-${workload.name}`, namespace: target.namespace, labels };
  const at = (key: string) => `${workload.name}.${key}`;
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { ...metadata, annotations: { 'kubernetes.io/description': workload.description } },
      spec: {
        ...target.unlessAutoscaled(workload.name, { replicas: target.value(at('replicas')) }),
        selector: { matchLabels: labels },
        template: {
          metadata: {
            labels: { ...labels, ...target.merge(at('podLabels')) },
            annotations: {
              'kubectl.kubernetes.io/default-container': 'sluice',
              ...target.checksums,
              ...target.merge(at('podAnnotations')),
            },
          },
          spec: podSpec(workload, target),
        },
      },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: {
        maxUnavailable: target.value(at('maxUnavailable')),
        // A pod that is not ready does not have any work that an eviction could interrupt.
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
        selector: { matchLabels: labels },
      },
    },
  ];
}

/**
 * Returns the node selector and the tolerations of a pod.
 * @param section the values that contain them
 */
export function nodesOf(section: string, target: Target): object {
  const [selector, tolerations] = [`${section}.nodeSelector`, `${section}.tolerations`];
  return {
    ...target.when(selector, { nodeSelector: target.tree(selector) }),
    ...target.when(tolerations, { tolerations: target.tree(tolerations) }),
  };
}

function podSpec(workload: Workload, target: Target): object {
  const at = (key: string) => `${workload.name}.${key}`;
  const rootKey = { name: 'root-key', secret: { secretName: target.secretOf('root-key') } };
  const selector = { matchLabels: labelsOf(target, workload.name) };
  return {
    serviceAccountName: target.accountOf(workload.name),
    automountServiceAccountToken: workload.token,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: target.graceSeconds,
    securityContext: POD_SECURITY,
    ...target.when('imagePullSecrets', { imagePullSecrets: target.tree('imagePullSecrets') }),
    ...target.when(at('priorityClassName'), { priorityClassName: target.value(at('priorityClassName')) }),
    ...nodesOf(workload.name, target),
    ...target.when(at('affinity'), { affinity: target.tree(at('affinity')) }),
    topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map(topologyKey => ({
      maxSkew: 1,
      topologyKey,
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: selector,
      // Otherwise, the old pods count during an upgrade, and all new pods can end up on the same node.
      matchLabelKeys: ['pod-template-hash'],
    })),
    containers: [container(workload, target)],
    volumes: [
      ...(workload.rootKey ? [rootKey] : []),
      ...redisFileVolumes(workload.name, target),
      ...servedFileVolumes(workload, target),
      ...trustVolumes(target),
      ...target.spread(at('extraVolumes')),
    ],
  };
}

function container(workload: Workload, target: Target): object {
  const at = (key: string) => `${workload.name}.${key}`;
  const ports = [...workload.serves, { name: 'ops', number: OPS_PORT }];
  return {
    name: 'sluice',
    image: target.image,
    imagePullPolicy: target.value('image.pullPolicy'),
    args: [workload.name],
    ports: ports.map(({ name, number }) => ({ name, containerPort: number })),
    envFrom: [{ configMapRef: { name: `${target.prefix}-config` } }],
    env: [...environment(workload, target), ...target.spread(at('extraEnv'))],
    resources: target.tree(at('resources')),
    ...probes(),
    securityContext: CONTAINER_SECURITY,
    volumeMounts: [
      ...(workload.rootKey ? [{ name: 'root-key', mountPath: ROOT_KEY_FOLDER, readOnly: true }] : []),
      ...redisFileMounts(target),
      ...servedFileMounts(workload, target),
      ...trustMounts(target),
      ...target.spread(at('extraVolumeMounts')),
    ],
  };
}

function environment(workload: Workload, target: Target): unknown[] {
  const { token, rootKey, mail } = workload;
  const urlIn = (name: string, optional: object = {}) => ({
    valueFrom: { secretKeyRef: { name, key: 'url', ...optional } },
  });
  return [
    { name: 'SLUICE_REDIS_URL', ...urlIn(target.secretOf('redis')) },
    ...redisFileVariables(workload.name, target),
    ...servedFileVariables(workload, target),
    ...trustVariables(target),
    ...(token ? [{ name: 'SLUICE_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }] : []),
    ...(rootKey ? [{ name: 'SLUICE_ROOT_KEY_FILE', value: `${ROOT_KEY_FOLDER}/root.key` }] : []),
    ...(mail
      ? [{ name: 'SLUICE_SMTP_URL', ...urlIn(target.secretOf('smtp'), { optional: target.smtpOptional }) }]
      : []),
  ];
}

/**
 * Returns the probes. Only the process itself decides whether to restart. A role waits for Redis and the API server
 * while they are unavailable, so a restart would not help. If a process is slow because its node is busy, a restart
 * would make it even slower. A process has 5 minutes to start. Afterwards, the probes use the same times as kubeadm for
 * the control plane of Kubernetes, and cert-manager for its controller.
 */
function probes(): object {
  const get = (path: string) => ({ httpGet: { path, port: 'ops' } });
  return {
    startupProbe: { ...get('/healthz'), periodSeconds: 1, timeoutSeconds: 15, failureThreshold: 300 },
    livenessProbe: { ...get('/healthz'), periodSeconds: 10, timeoutSeconds: 15, failureThreshold: 8 },
    readinessProbe: { ...get('/readyz'), periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 },
  };
}
