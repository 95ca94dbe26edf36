import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import { bindingRules, core, ours, type PolicyRule, READ } from '../../../src/kube/access/rights.ts';
import type { Installation } from '../installation.ts';
import { ROLE_DEFINITIONS, type RoleDefinition } from '../roles.ts';

export type { PolicyRule };

/** A ClusterRole, or a Role in `namespace`. Without a `serviceAccount`, it is bound by the administrator. */
export interface ShippedRole {
  readonly name: string;
  readonly namespace?: string;
  /** A sentence for the manifest and the reference page. */
  readonly description: string;
  readonly rules: readonly PolicyRule[];
  readonly serviceAccount?: string;
}

/** A service account. Without a `token`, its pods don't receive a token. */
export interface ShippedServiceAccount {
  readonly name: string;
  readonly description: string;
  readonly token: boolean;
}

type Prefixed = Pick<Installation, 'prefix'>;

const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];

const names = Object.keys(KINDS) as KindName[];
const namespaced = names.filter(name => KINDS[name].scope === 'Namespaced');
const ofCluster = names.filter(name => KINDS[name].scope === 'Cluster');

/** Returns the service account of each role. */
export function serviceAccountsOf({ prefix }: Installation): readonly ShippedServiceAccount[] {
  return ROLE_DEFINITIONS.map(({ name, rights }) => ({
    name: `${prefix}-${name}`,
    description: rights?.purpose ?? 'Does not connect to Kubernetes and does not need a token.',
    token: rights !== undefined,
  }));
}

/** Returns the permissions of a role's service account, which are further limited by admission.ts. */
export function rolesOfAccount({ name: role, rights }: RoleDefinition, installation: Installation): ShippedRole[] {
  if (rights === undefined) return [];
  const { prefix, namespace, accountOf } = installation;
  const serviceAccount = accountOf(role);
  const bound = { name: `${prefix}-${role}`, serviceAccount };
  const { bindable } = rights;
  return [
    { ...bound, ...rights.cluster },
    ...(bindable === undefined ? [] : [{ ...bindable, serviceAccount, name: `${prefix}-${bindable.name}` }]),
    ...(rights.namespace === undefined ? [] : [{ ...bound, namespace, ...rights.namespace }]),
  ];
}

/** Returns the name of the ClusterRole that allows the controller to read and write Secrets. */
export function secretsRoleOf({ prefix }: Prefixed): string {
  return `${prefix}-workspace-secrets`;
}

/** Returns the permissions of a controller that binds this ClusterRole in workspace namespaces. */
export function roleForBindings(installation: Installation): ShippedRole {
  return {
    name: `${installation.prefix}-controller-bindings`,
    serviceAccount: installation.accountOf('controller'),
    description:
      'The permission to bind the ClusterRole for Secrets. An admission policy restricts this permission to workspace namespaces.',
    rules: bindingRules(secretsRoleOf(installation)),
  };
}

/** Returns the roles for the namespace of a workspace. Their RoleBindings are limited by an admission policy. */
export function rolesOfTenants({ prefix }: Prefixed): readonly ShippedRole[] {
  return [
    {
      name: `${prefix}-tenant-edit`,
      description:
        "Full access to a single workspace, except for Secrets. To grant this role, create a RoleBinding in the workspace's namespace.",
      rules: [ours(namespaced, [...READ, ...WRITE]), core('events', READ)],
    },
    {
      name: `${prefix}-tenant-secrets`,
      description:
        "Full access to the Secrets of a single workspace, for ingress keys, signing secrets, and endpoint headers. To grant this role, create a RoleBinding in the workspace's namespace.",
      rules: [core('secrets', [...READ, ...WRITE])],
    },
    {
      name: `${prefix}-tenant-view`,
      description:
        "Read access to a single workspace, except for Secrets, and Integrations because they contain email addresses. To grant this role, create a RoleBinding in the workspace's namespace.",
      rules: [
        ours(
          namespaced.filter(name => name !== 'Integration'),
          READ,
        ),
        core('events', READ),
      ],
    },
  ];
}

/** Returns the roles that an administrator can bind to users and tools. */
export function rolesOfUsers({ prefix }: Prefixed): readonly ShippedRole[] {
  const tenants = rolesOfTenants({ prefix });
  return [
    ...tenants,
    {
      name: `${prefix}-admin`,
      description:
        'A platform administrator, who manages accounts and workspaces, and binds the tenant roles. An admission policy restricts these RoleBindings to workspace namespaces. Use a ClusterRoleBinding to bind this role.',
      rules: [
        ours(ofCluster, [...READ, ...WRITE]),
        core('events', READ),
        // This does not include delete because RBAC could not limit it to the bindings of Sluice. A binding without
        // subjects does not grant anything.
        {
          apiGroups: ['rbac.authorization.k8s.io'],
          resources: ['rolebindings'],
          verbs: [...READ, 'create', 'update', 'patch'],
        },
        {
          apiGroups: ['rbac.authorization.k8s.io'],
          resources: ['clusterroles'],
          resourceNames: tenants.map(({ name }) => name),
          verbs: ['bind'],
        },
      ],
    },
  ];
}
