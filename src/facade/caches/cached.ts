import type { KindName, ObjectOf } from '../../api/kinds/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';

/** Object in the caches. */
export type Cached<K extends KindName> = KubeObject<ObjectOf<K>['spec'], NonNullable<ObjectOf<K>['status']>>;
