import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import {
  CONTROLLER_RULES,
  core,
  FACADE_RULES,
  LEASE_RULES,
  ours,
  type PolicyRule,
  READ,
} from '../../../src/kube/rights.ts';

export type { PolicyRule };

/** Where the roles of Sluice run, and the Lease of the controller lies. */
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

/** A service account; without `token`, no pod of it gets one. */
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
  { name: 'sluice-ingress', description: 'Does not talk to Kubernetes: no token.', token: false },
  { name: 'sluice-router', description: 'Does not talk to Kubernetes: no token.', token: false },
  { name: 'sluice-dispatcher', description: 'Does not talk to Kubernetes: no token.', token: false },
];

/** All that is granted to anybody. What a service account may not do in spite of it: admission.ts. */
export const SHIPPED_ROLES: readonly ShippedRole[] = [
  {
    name: 'sluice-controller',
    description:
      'What the controller does. Admission policies hold it to finalizers, revoked activations and its Secrets.',
    serviceAccount: 'sluice-controller',
    rules: CONTROLLER_RULES,
  },
  {
    name: 'sluice-controller',
    namespace: SYSTEM_NAMESPACE,
    description: 'The Lease by which one controller leads.',
    serviceAccount: 'sluice-controller',
    rules: LEASE_RULES,
  },
  {
    name: 'sluice-facade',
    description:
      'What the facade does for callers of /waas. Admission policies hold it to new accounts of the plan Free, and to few fields of workspaces.',
    serviceAccount: 'sluice-facade',
    rules: FACADE_RULES,
  },
  {
    name: 'sluice-tenant-edit',
    description: 'Everything that a tenant does in its namespace. Bind it there, by a RoleBinding.',
    rules: [ours(namespaced, [...READ, ...WRITE]), core('secrets', [...READ, ...WRITE]), core('events', READ)],
  },
  {
    name: 'sluice-tenant-view',
    description:
      'Reading what a tenant has, without Integrations, which hold addresses, and without Secrets. Bind it there, by a RoleBinding.',
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
      'The administrator of the platform: workspaces, accounts, and who may act in a namespace. Bind it by a ClusterRoleBinding.',
    rules: [
      ours(ofCluster, [...READ, ...WRITE]),
      core('events', READ),
      // Deleting is left out: RBAC could not keep it from the bindings of others. An emptied binding grants nothing.
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
