import { GROUP, VERSION } from '../api/group-version.ts';
import type { KindDefinition } from '../api/kind.ts';
import type { ObjectName } from './object.ts';

/** The fields of a kind that are needed to build the paths of the API server. */
export type Resource = {
  /** The API group. It is empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** The plural name in lower case, as it is used in the path. */
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
export const LEASES: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

/** Returns the `apiVersion` of the kind, for example `v1` or `sluice.dev/v1alpha1`. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** Returns the path of the collection. If `namespace` is not set, the path includes the objects in all namespaces. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root = resource.group === '' ? '/api' : `/apis/${resource.group}`;
  const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}/${resource.version}${scope}/${resource.plural}`;
}

/** Returns the path of one object. @throws if the kind is namespaced and the namespace is missing */
export function objectPath(resource: Resource, { namespace, name }: ObjectName, subresource?: string): string {
  if (resource.namespaced && !namespace) throw new Error(`${resource.kind} ${name} is named without a namespace`);
  // An empty name must be rejected, because the path would refer to the whole collection.
  if (name === '') throw new Error(`a ${resource.kind} is named by an empty name`);
  const path = `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Returns the resource for a kind of this project. */
export function resourceOf(kind: Pick<KindDefinition, 'kind' | 'plural' | 'scope'>): Resource {
  return {
    group: GROUP,
    version: VERSION,
    kind: kind.kind,
    plural: kind.plural,
    namespaced: kind.scope === 'Namespaced',
  };
}
