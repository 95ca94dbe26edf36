import { stringify } from 'yaml';
import type { GeneratedFile } from '../generate.ts';
import { SHIPPED_POLICIES, type ShippedPolicy, userNameOf } from './admission.ts';
import {
  SERVICE_ACCOUNTS,
  SHIPPED_ROLES,
  type ShippedRole,
  type ShippedServiceAccount,
  SYSTEM_NAMESPACE,
} from './permissions.ts';

const LABELS = { 'app.kubernetes.io/name': 'sluice' };
const RBAC = 'rbac.authorization.k8s.io';
const ADMISSION = 'admissionregistration.k8s.io';

/** Renders the manifests in config/rbac. The admission policies come first: no right is granted without them. */
export function renderRbac(): GeneratedFile[] {
  const ofAccount = (name: string) => SHIPPED_ROLES.filter(({ serviceAccount }) => serviceAccount === name);
  const forUsers = SHIPPED_ROLES.filter(({ serviceAccount }) => serviceAccount === undefined);
  return [
    manifests('admission-policies', SHIPPED_POLICIES.flatMap(admissionPolicy)),
    manifests('controller', ofAccount('sluice-controller').flatMap(roleAndBinding)),
    manifests('facade', ofAccount('sluice-facade').flatMap(roleAndBinding)),
    manifests('service-accounts', SERVICE_ACCOUNTS.map(serviceAccount)),
    manifests('users', forUsers.flatMap(roleAndBinding)),
  ];
}

function manifests(name: string, objects: readonly object[]): GeneratedFile {
  const options = { lineWidth: 110, aliasDuplicateObjects: false };
  const documents = objects.map(object => stringify(object, options)).join('---\n');
  return {
    path: `config/rbac/${name}.yaml`,
    text: `# Generated from tools/generate/rbac/permissions.ts and tools/generate/rbac/admission.ts by tools/generate/generate.ts. Change it there.\n${documents}`,
  };
}

function metadata(name: string, description: string, namespace?: string) {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    labels: LABELS,
    annotations: { 'kubernetes.io/description': description },
  };
}

function serviceAccount({ name, description, token }: ShippedServiceAccount) {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: metadata(name, description, SYSTEM_NAMESPACE),
    automountServiceAccountToken: token,
  };
}

function roleAndBinding({ name, description, namespace, rules, serviceAccount: bound }: ShippedRole): object[] {
  const kind = namespace === undefined ? 'ClusterRole' : 'Role';
  const role = { apiVersion: `${RBAC}/v1`, kind, metadata: metadata(name, description, namespace), rules };
  if (bound === undefined) return [role];
  const binding = {
    apiVersion: `${RBAC}/v1`,
    kind: `${kind}Binding`,
    metadata: metadata(name, description, namespace),
    roleRef: { apiGroup: RBAC, kind, name },
    subjects: [{ kind: 'ServiceAccount', name: bound, namespace: SYSTEM_NAMESPACE }],
  };
  return [role, binding];
}

function admissionPolicy(policy: ShippedPolicy): object[] {
  const { name, description, serviceAccount: held, apiGroup, resources, operations, validations } = policy;
  return [
    {
      apiVersion: `${ADMISSION}/v1`,
      kind: 'ValidatingAdmissionPolicy',
      metadata: metadata(name, description),
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [{ apiGroups: [apiGroup], apiVersions: ['*'], operations, resources }],
        },
        matchConditions: [{ name: held, expression: `request.userInfo.username == '${userNameOf(held)}'` }],
        validations: validations.map(validation => ({ ...validation, reason: 'Forbidden' })),
      },
    },
    {
      apiVersion: `${ADMISSION}/v1`,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: metadata(name, description),
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ];
}
