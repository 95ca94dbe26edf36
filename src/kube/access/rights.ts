import { GROUP } from '../../api/group-version.ts';
import { KINDS, type KindName } from '../../api/kinds/kinds.ts';
import { QUOTA_NAME } from '../../api/well-known.ts';
import { CRD_NAMES } from '../definitions/crds.ts';
import { LEASE_NAME } from '../lease.ts';

/** A rule that can be used in an RBAC role. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

export const READ = ['get', 'list', 'watch'];

const names = Object.keys(KINDS) as KindName[];

/** Kinds with a finalizer. For all other kinds, the controller only needs to patch the status. */
export const WITH_FINALIZER: readonly KindName[] = ['Account', 'Workspace', 'CatalogStream', 'Package', 'Subscription'];

/** Returns a rule for the given Sluice kinds. */
export function ours(kinds: readonly KindName[], verbs: readonly string[], subresource?: 'status'): PolicyRule {
  const plural = (kind: KindName) => KINDS[kind].plural + (subresource === undefined ? '' : `/${subresource}`);
  return { apiGroups: [GROUP], resources: kinds.map(plural), verbs };
}

/** Returns a rule for a resource in the core group. */
export function core(resource: string, verbs: readonly string[]): PolicyRule {
  return { apiGroups: [''], resources: [resource], verbs };
}

/** The controller's Lease has the same name as its service account. */
const LEASE = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };

/**
 * Cluster-wide permissions of the controller. The Leases of other installations have the same name, and a field
 * selector with this name satisfies the restriction.
 */
export const CONTROLLER_RULES: readonly PolicyRule[] = [
  ours(names, READ),
  ours(names, ['patch'], 'status'),
  ours(WITH_FINALIZER, ['patch']),
  ours(['Activation'], ['delete']),
  core('namespaces', [...READ, 'create']),
  core('events', ['create', 'patch']),
  { ...LEASE, resourceNames: [LEASE_NAME], verbs: ['list'] },
  // RBAC can restrict `create` to a name for server-side apply, and `list` for a field selector with the name.
  { ...core('resourcequotas', ['list', 'create', 'patch']), resourceNames: [QUOTA_NAME] },
  {
    apiGroups: ['apiextensions.k8s.io'],
    resources: ['customresourcedefinitions'],
    resourceNames: CRD_NAMES,
    verbs: ['get'],
  },
];

/**
 * The permissions for Secrets. The controller requires them either for the whole cluster or in the workspace
 * namespaces.
 */
export const SECRETS_RULES: readonly PolicyRule[] = [core('secrets', [...READ, 'create', 'patch'])];

const RBAC = ['rbac.authorization.k8s.io'];

/**
 * Returns the cluster-wide permissions of a controller that binds `role` in the workspace namespaces. The verb `create`
 * is limited to this name as well because the controller writes the RoleBinding by server-side apply, and so are `list`
 * and `watch` because it selects them by their name.
 */
export function bindingRules(role: string): readonly PolicyRule[] {
  const verbs = ['list', 'watch', 'create', 'patch', 'delete'];
  return [
    { apiGroups: RBAC, resources: ['rolebindings'], resourceNames: [role], verbs },
    { apiGroups: RBAC, resources: ['clusterroles'], resourceNames: [role], verbs: ['bind'] },
  ];
}

/** The permissions required by the controller in the namespace of its Lease. */
export const LEASE_RULES: readonly PolicyRule[] = [
  // RBAC can't restrict the `create` verb to a name.
  { ...LEASE, verbs: ['create'] },
  { ...LEASE, resourceNames: [LEASE_NAME], verbs: ['get', 'update'] },
];

/**
 * Returns the cluster-wide permissions for `sluice uninstall`. The command also needs the LEASE_RULES.
 *
 * @param role ClusterRole that the controller may have bound in the workspace namespaces
 */
export function uninstallRules(role: string): readonly PolicyRule[] {
  return [
    ours(WITH_FINALIZER, ['list', 'patch']),
    core('namespaces', ['list']),
    { apiGroups: RBAC, resources: ['rolebindings'], resourceNames: [role], verbs: ['list', 'delete'] },
  ];
}

/** Cluster-wide permissions of the facade. */
export const FACADE_RULES: readonly PolicyRule[] = [
  ours(names, [...READ, 'create', 'patch']),
  ours(['Block', 'Subscription'], ['delete']),
];
