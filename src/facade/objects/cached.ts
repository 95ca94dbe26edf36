import { KINDS, type KindName, type ObjectOf } from '../../api/kinds/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type Resource, resourceOf } from '../../kube/resource.ts';

/** An object of a kind as the caches hold it. */
export type Cached<K extends KindName> = KubeObject<ObjectOf<K>['spec'], NonNullable<ObjectOf<K>['status']>>;

/** The paths of each kind. */
export const RESOURCES = Object.fromEntries(Object.values(KINDS).map(kind => [kind.kind, resourceOf(kind)])) as {
  readonly [K in KindName]: Resource;
};
