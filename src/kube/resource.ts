import { GROUP, VERSION } from '../api/group-version.ts';
import { KINDS, type KindName } from '../api/kinds/kinds.ts';
import type { ObjectName } from './object.ts';

/** Everything about a kind needed to build API server paths. */
export type Resource = {
  /** API group. Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Lowercase plural name, as used in the path. */
  readonly plural: string;
  readonly namespaced: boolean;
};

export const SECRETS: Resource = { group: '', version: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };
export const EVENTS: Resource = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true };
export const NAMESPACES: Resource = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
};
export const ROLE_BINDINGS: Resource = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  namespaced: true,
};
export const RESOURCE_QUOTAS: Resource = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  namespaced: true,
};
export const LEASES: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

/** Returns the `apiVersion` of this kind, e.g. `v1` or `sluice.dev/v1alpha1`. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** Returns the path of the collection. Without a `namespace`, this includes objects in all namespaces. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root = resource.group === '' ? '/api' : `/apis/${resource.group}`;
  const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}/${resource.version}${scope}/${resource.plural}`;
}

/** Returns the object path. @throws if the kind is namespaced and no namespace was given */
export function objectPath(resource: Resource, { namespace, name }: ObjectName, subresource?: string): string {
  if (resource.namespaced && !namespace) throw new Error(`${resource.kind} ${name} requires a namespace`);
  // Reject empty names, since the path would otherwise refer to the whole collection.
  if (name === '') throw new Error(`the name of a ${resource.kind} must not be empty`);
  const path = `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Returns the resource for one of our own kinds. */
export function resourceOf(kind: KindName): Resource {
  const { plural, scope } = KINDS[kind];
  return { group: GROUP, version: VERSION, kind, plural, namespaced: scope === 'Namespaced' };
}
