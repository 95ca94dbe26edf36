import { GROUP } from '../../api/group-version.ts';
import { KINDS, type KindName } from '../../api/kinds/kinds.ts';
import { CRD_NAMES } from '../crds.ts';

/** A rule of an RBAC role. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

export const READ = ['get', 'list', 'watch'];

const names = Object.keys(KINDS) as KindName[];

/** Kinds with a finalizer. For all other kinds, the controller only needs to patch the status. */
const WITH_FINALIZER: readonly KindName[] = ['Workspace', 'CatalogStream', 'Package', 'Subscription'];

/** Returns a rule for the given Sluice kinds. */
export function ours(kinds: readonly KindName[], verbs: readonly string[], subresource?: 'status'): PolicyRule {
  const plural = (kind: KindName) => KINDS[kind].plural + (subresource === undefined ? '' : `/${subresource}`);
  return { apiGroups: [GROUP], resources: kinds.map(plural), verbs };
}

/** Returns a rule for a core group resource. */
export function core(resource: string, verbs: readonly string[]): PolicyRule {
  return { apiGroups: [''], resources: [resource], verbs };
}

/** The controller's Lease has the same name as its service account. */
const LEASE = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };

/** Cluster-wide permissions of the controller. */
export const CONTROLLER_RULES: readonly PolicyRule[] = [
  ours(names, READ),
  ours(names, ['patch'], 'status'),
  ours(WITH_FINALIZER, ['patch']),
  ours(['Activation'], ['delete']),
  core('namespaces', [...READ, 'create']),
  core('secrets', [...READ, 'create', 'patch']),
  core('events', ['create', 'patch']),
  {
    apiGroups: ['apiextensions.k8s.io'],
    resources: ['customresourcedefinitions'],
    resourceNames: CRD_NAMES,
    verbs: ['get'],
  },
];

/** Permissions of the controller in the namespace of its Lease. */
export const LEASE_RULES: readonly PolicyRule[] = [
  // RBAC can't restrict the `create` verb to a name.
  { ...LEASE, verbs: ['create'] },
  { ...LEASE, resourceNames: ['sluice-controller'], verbs: ['get', 'update'] },
];

/** Cluster-wide permissions of the facade. */
export const FACADE_RULES: readonly PolicyRule[] = [
  ours(names, [...READ, 'create', 'patch']),
  ours(['Block', 'Subscription'], ['delete']),
];
