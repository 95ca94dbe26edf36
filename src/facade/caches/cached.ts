import { KINDS, type KindName, type ObjectOf } from '../../api/kinds/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type Resource, resourceOf } from '../../kube/resource.ts';

/** Object in the caches. */
export type Cached<K extends KindName> = KubeObject<ObjectOf<K>['spec'], NonNullable<ObjectOf<K>['status']>>;

/** API path for each kind. */
export const RESOURCES = Object.fromEntries(Object.values(KINDS).map(kind => [kind.kind, resourceOf(kind)])) as {
  readonly [K in KindName]: Resource;
};
