import type { GeneratedFile } from '../generate.ts';
import { DEFAULT_INSTALLATION, type Installation } from '../installation.ts';
import { describedMetadata } from '../manifests/metadata.ts';
import { stringifyAll } from '../manifests/yaml.ts';
import { ROLE_DEFINITIONS } from '../roles.ts';
import { conditionOf, SHIPPED_POLICIES, type ShippedPolicy } from './admission.ts';
import { leaseFlowSchema } from './flow-schema.ts';
import {
  rolesOfAccount,
  rolesOfUsers,
  type ShippedRole,
  type ShippedServiceAccount,
  serviceAccountsOf,
} from './permissions.ts';

const RBAC = 'rbac.authorization.k8s.io';
const ADMISSION = 'admissionregistration.k8s.io';

/** The objects that limit and grant permissions, by file name. */
export type RightsFiles = Readonly<Record<string, readonly object[]>>;

/**
 * Returns an installation's objects. The admission policies come first so that no permissions are granted without
 * them.
 */
export function describeRights(installation: Installation): RightsFiles {
  const withRights = ROLE_DEFINITIONS.filter(({ rights }) => rights !== undefined);
  const toObjects = (roles: readonly ShippedRole[]) => roles.flatMap(role => roleAndBinding(role, installation));
  return {
    'admission-policies': SHIPPED_POLICIES.filter(
      ({ role, namespacedSecrets }) => role !== 'all' && !namespacedSecrets,
    ).flatMap(policy => admissionPolicy(policy, installation)),
    ...Object.fromEntries(withRights.map(role => [role.name, toObjects(rolesOfAccount(role, installation))])),
    'flow-schema': [leaseFlowSchema(installation)],
    'service-accounts': serviceAccountsOf(installation).map(account => serviceAccount(account, installation)),
    users: toObjects(rolesOfUsers(installation)),
  };
}

/** Renders the manifests in config/rbac. */
export function renderRbac(): GeneratedFile[] {
  const origin =
    '# Generated from tools/generate/rbac/permissions.ts and tools/generate/rbac/admission.ts by tools/generate/generate.ts. Change it there.\n';
  return Object.entries(describeRights(DEFAULT_INSTALLATION)).map(([name, objects]) => ({
    path: `config/rbac/${name}.yaml`,
    text: origin + stringifyAll(objects),
  }));
}

export function serviceAccount({ name, description, token }: ShippedServiceAccount, installation: Installation) {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: describedMetadata(installation, { name, description, namespace: installation.namespace }),
    automountServiceAccountToken: token,
  };
}

/** Returns a role and its binding (if it belongs to a service account). */
export function roleAndBinding({ serviceAccount: bound, ...role }: ShippedRole, installation: Installation): object[] {
  const kind = role.namespace === undefined ? 'ClusterRole' : 'Role';
  const metadata = describedMetadata(installation, role);
  const shipped = { apiVersion: `${RBAC}/v1`, kind, metadata, rules: role.rules };
  if (bound === undefined) return [shipped];
  const binding = {
    apiVersion: `${RBAC}/v1`,
    kind: `${kind}Binding`,
    metadata,
    roleRef: { apiGroup: RBAC, kind, name: role.name },
    subjects: [{ kind: 'ServiceAccount', name: bound, namespace: installation.namespace }],
  };
  return [shipped, binding];
}

/** Returns a policy and its binding. */
export function admissionPolicy(policy: ShippedPolicy, installation: Installation): object[] {
  const { description, role, apiGroup, resources, resourceNames, operations, validations } = policy;
  const name = `${installation.prefix}-${policy.name}`;
  const metadata = describedMetadata(installation, { name, description });
  return [
    {
      apiVersion: `${ADMISSION}/v1`,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: [apiGroup],
              apiVersions: ['*'],
              operations,
              resources,
              ...(resourceNames === undefined ? {} : { resourceNames }),
            },
          ],
        },
        matchConditions: [{ name: `${installation.prefix}-${role}`, expression: conditionOf(policy, installation) }],
        validations: validations.map(validation => ({ ...validation, reason: 'Forbidden' })),
      },
    },
    {
      apiVersion: `${ADMISSION}/v1`,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ];
}
