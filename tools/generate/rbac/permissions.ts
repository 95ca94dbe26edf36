import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import {
  CONTROLLER_RULES,
  core,
  FACADE_RULES,
  LEASE_RULES,
  ours,
  type PolicyRule,
  READ,
} from '../../../src/kube/access/rights.ts';

export type { PolicyRule };

/** Namespace of the roles of Sluice and of the controller's Lease. */
export const SYSTEM_NAMESPACE = 'sluice-system';

/** A ClusterRole, or a Role in `namespace`. Without `serviceAccount`, the administrator binds it. */
export interface ShippedRole {
  readonly name: string;
  readonly namespace?: string;
  /** One sentence, for the manifest and the reference page. */
  readonly description: string;
  readonly rules: readonly PolicyRule[];
  readonly serviceAccount?: string;
}

/** A service account. Without `token`, its pods get no token. */
export interface ShippedServiceAccount {
  readonly name: string;
  readonly description: string;
  readonly token: boolean;
}

const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];

const names = Object.keys(KINDS) as KindName[];
const namespaced = names.filter(name => KINDS[name].scope === 'Namespaced');
const ofCluster = names.filter(name => KINDS[name].scope === 'Cluster');

export const SERVICE_ACCOUNTS: readonly ShippedServiceAccount[] = [
  { name: 'sluice-controller', description: 'Writes statuses, finalizers and mirrored Secrets.', token: true },
  { name: 'sluice-facade', description: 'Writes custom resources for callers of /waas.', token: true },
  { name: 'sluice-ingress', description: 'Does not connect to Kubernetes and does not need a token.', token: false },
  { name: 'sluice-router', description: 'Does not connect to Kubernetes and does not need a token.', token: false },
  { name: 'sluice-dispatcher', description: 'Does not connect to Kubernetes and does not need a token.', token: false },
];

/** All granted rights. admission.ts limits the service accounts further. */
export const SHIPPED_ROLES: readonly ShippedRole[] = [
  {
    name: 'sluice-controller',
    description:
      'The permissions of the controller. Admission policies restrict these permissions to finalizers, revoked activations and the Secrets of the controller.',
    serviceAccount: 'sluice-controller',
    rules: CONTROLLER_RULES,
  },
  {
    name: 'sluice-controller',
    namespace: SYSTEM_NAMESPACE,
    description: 'The permission to use the Lease for leader election of the controller.',
    serviceAccount: 'sluice-controller',
    rules: LEASE_RULES,
  },
  {
    name: 'sluice-facade',
    description:
      'The permissions of the facade for callers of /waas. Admission policies restrict these permissions to new accounts with the plan Free and to some fields of workspaces.',
    serviceAccount: 'sluice-facade',
    rules: FACADE_RULES,
  },
  {
    name: 'sluice-tenant-edit',
    description: 'Full access to one workspace. Use a RoleBinding to bind this role in the namespace of the workspace.',
    rules: [ours(namespaced, [...READ, ...WRITE]), core('secrets', [...READ, ...WRITE]), core('events', READ)],
  },
  {
    name: 'sluice-tenant-view',
    description:
      'Read access to one workspace, except Secrets and Integrations, because Integrations contain email addresses. Use a RoleBinding to bind this role in the namespace of the workspace.',
    rules: [
      ours(
        namespaced.filter(name => name !== 'Integration'),
        READ,
      ),
      core('events', READ),
    ],
  },
  {
    name: 'sluice-admin',
    description:
      'Administrator of the platform with access to workspaces, accounts and namespaces. Use a ClusterRoleBinding to bind this role.',
    rules: [
      ours(ofCluster, [...READ, ...WRITE]),
      core('events', READ),
      // Without delete: RBAC could not limit it to the bindings of Sluice. An emptied binding grants nothing.
      {
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['rolebindings'],
        verbs: [...READ, 'create', 'update', 'patch'],
      },
      {
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['clusterroles'],
        resourceNames: ['sluice-tenant-edit', 'sluice-tenant-view'],
        verbs: ['bind'],
      },
    ],
  },
];
