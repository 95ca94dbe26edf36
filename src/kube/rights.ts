import { GROUP } from '../api/group-version.ts';
import { KINDS, type KindName } from '../api/kinds/kinds.ts';
import { CRD_NAMES } from './crds.ts';

/** A rule of RBAC, as Kubernetes writes it. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

export const READ = ['get', 'list', 'watch'];

const names = Object.keys(KINDS) as KindName[];

/** The kinds that leave something in Redis. Only these does the controller patch outside of their status. */
const WITH_FINALIZER: readonly KindName[] = ['Workspace', 'CatalogStream', 'Package', 'Subscription'];

/** Returns the rule for kinds of Sluice. */
export function ours(kinds: readonly KindName[], verbs: readonly string[], subresource?: 'status'): PolicyRule {
  const plural = (kind: KindName) => KINDS[kind].plural + (subresource === undefined ? '' : `/${subresource}`);
  return { apiGroups: [GROUP], resources: kinds.map(plural), verbs };
}

/** Returns the rule for a resource of the core group. */
export function core(resource: string, verbs: readonly string[]): PolicyRule {
  return { apiGroups: [''], resources: [resource], verbs };
}

/** The controller's Lease has this name, as its service account has. */
const LEASE = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };

/** What the controller needs in the whole cluster. */
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

/** What the controller needs in the namespace of its Lease. */
export const LEASE_RULES: readonly PolicyRule[] = [
  // RBAC cannot say the name of what does not exist yet.
  { ...LEASE, verbs: ['create'] },
  { ...LEASE, resourceNames: ['sluice-controller'], verbs: ['get', 'update'] },
];

/** What the facade needs in the whole cluster. */
export const FACADE_RULES: readonly PolicyRule[] = [
  ours(names, [...READ, 'create', 'patch']),
  ours(['Block', 'Subscription'], ['delete']),
];
