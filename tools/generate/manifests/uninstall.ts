import { LEASE_RULES, uninstallRules } from '../../../src/kube/access/rights.ts';
import type { Installation } from '../installation.ts';
import { type ShippedRole, secretsRoleOf } from '../rbac/permissions.ts';
import { roleAndBinding, serviceAccount } from '../rbac/rbac.ts';
import { labelsOf } from './metadata.ts';
import { networkPolicyOf } from './network-policies.ts';
import { redisFileMounts, redisFileVariables, redisFileVolumes } from './redis-files.ts';
import { trustMounts, trustVariables, trustVolumes } from './served-files.ts';
import type { Target } from './target.ts';
import { CONTAINER_SECURITY, nodesOf, POD_SECURITY } from './workloads.ts';

const DESCRIPTION =
  "Removes the Sluice finalizers from all custom resources and removes the controller's RoleBindings.";

/** The deadline, which is shorter than the default timeout of Helm (5 minutes). */
const DEADLINE_SECONDS = 270;
/** The time for which the log of a failed Job is available. */
const KEEP_SECONDS = 86_400;

/** Returns the roles of the service account that runs `sluice uninstall`. */
export function rolesOfUninstall(installation: Installation): readonly ShippedRole[] {
  const { prefix, namespace } = installation;
  const bound = { name: `${prefix}-uninstall`, serviceAccount: `${prefix}-uninstall` };
  return [
    {
      ...bound,
      description:
        'The permission to remove finalizers and the controller RoleBindings. This permission is only granted while uninstalling Sluice.',
      rules: uninstallRules(secretsRoleOf(installation)),
    },
    {
      ...bound,
      namespace,
      description:
        "The permission to take over the controller's Lease, so that the controller does not add the finalizers again.",
      rules: LEASE_RULES,
    },
  ];
}

/** Returns the objects for running `sluice uninstall` once, in the order of creation. The Job is last. */
export function uninstallObjects(target: Target): readonly object[] {
  const name = `${target.prefix}-uninstall`;
  const account = { name, description: DESCRIPTION, token: true };
  return [
    serviceAccount(account, target),
    ...rolesOfUninstall(target).flatMap(role => roleAndBinding(role, target)),
    job(name, target),
  ];
}

/** Returns the NetworkPolicy of the Job. */
export function uninstallNetworkPolicy(target: Target): object {
  return networkPolicyOf({ name: 'uninstall', serves: [], connects: ['kubernetes'] }, target);
}

function job(name: string, target: Target): object {
  const labels = labelsOf(target, 'uninstall');
  const annotations = { 'kubernetes.io/description': DESCRIPTION };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: target.namespace, labels, annotations },
    spec: {
      // Running the Job again would have the same result.
      backoffLimit: 0,
      activeDeadlineSeconds: DEADLINE_SECONDS,
      ttlSecondsAfterFinished: KEEP_SECONDS,
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: 'Never',
          serviceAccountName: name,
          enableServiceLinks: false,
          securityContext: POD_SECURITY,
          ...target.when('imagePullSecrets', { imagePullSecrets: target.tree('imagePullSecrets') }),
          ...nodesOf('uninstall', target),
          containers: [container(target)],
          volumes: [
            ...redisFileVolumes('uninstall', target, { optional: true }),
            ...trustVolumes(target, { optional: true }),
          ],
        },
      },
    },
  };
}

/**
 * Everything related to Redis is optional because it may have been removed first. The ConfigMap is optional as well,
 * except for the installation name. Otherwise, the finalizers of another installation would be removed.
 */
function container(target: Target): object {
  const instance = { name: 'SLUICE_INSTANCE', value: target.value('instance', { as: 'text' }) };
  const url = { name: target.secretOf('redis'), key: 'url', optional: true };
  return {
    name: 'sluice',
    image: target.image,
    imagePullPolicy: target.value('image.pullPolicy'),
    args: ['uninstall', ...target.itemsWhen('uninstall.ignoreUndelivered', ['--ignore-undelivered'])],
    envFrom: [{ configMapRef: { name: `${target.prefix}-config`, optional: true } }],
    env: [
      ...target.itemsWhen('instance', [instance]),
      { name: 'SLUICE_REDIS_URL', valueFrom: { secretKeyRef: url } },
      ...redisFileVariables('uninstall', target),
      ...trustVariables(target),
      { name: 'SLUICE_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
      { name: 'SLUICE_SECRETS_ROLE', value: secretsRoleOf(target) },
    ],
    resources: target.tree('uninstall.resources'),
    // The pod status contains the reason for a refusal.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: CONTAINER_SECURITY,
    volumeMounts: [...redisFileMounts(target), ...trustMounts(target)],
  };
}
