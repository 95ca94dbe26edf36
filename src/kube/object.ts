/** The `metadata` fields used in this project. */
export type ObjectMeta = {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Not set if the kind does not have a spec, e.g. Secrets. */
  readonly generation?: number | undefined;
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly finalizers?: readonly string[] | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
};

/** An object of any kind, as returned by the API server. */
export type AnyObject = { readonly metadata: ObjectMeta };

/** An object with a spec written by users, and a status written by the controller. */
export type KubeObject<Spec = unknown, Status = unknown> = AnyObject & {
  readonly spec: Spec;
  readonly status?: Status | undefined;
};

/** The object name. If the kind is cluster-scoped, there is no `namespace`. */
export type ObjectName = { readonly namespace?: string | undefined; readonly name: string };

/**
 * Returns the object key: `namespace/name`, or only `name` if the kind is cluster-scoped. Same as MetaNamespaceKey in
 * client-go.
 */
export function keyOf(object: ObjectName): string {
  return object.namespace ? `${object.namespace}/${object.name}` : object.name;
}

/**
 * Returns the parts of an object to cache. We remove managedFields and annotations because they usually make up most of
 * the size (kubectl even uses an annotation to store a copy of the manifest).
 *
 * @param annotations names of annotations to keep
 */
export function slimObject<Spec, Status>(
  object: KubeObject<Spec, Status>,
  annotations: readonly string[] = [],
): KubeObject<Spec, Status> {
  const { metadata, spec, status } = object;
  const kept = annotations.flatMap(name => {
    const value = metadata.annotations?.[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    metadata: {
      name: metadata.name,
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      uid: metadata.uid,
      resourceVersion: metadata.resourceVersion,
      ...(metadata.generation === undefined ? {} : { generation: metadata.generation }),
      ...(metadata.creationTimestamp === undefined ? {} : { creationTimestamp: metadata.creationTimestamp }),
      ...(metadata.deletionTimestamp === undefined ? {} : { deletionTimestamp: metadata.deletionTimestamp }),
      ...(metadata.finalizers === undefined ? {} : { finalizers: metadata.finalizers }),
      ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
      ...(kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) }),
    },
    spec,
    ...(status === undefined ? {} : { status }),
  };
}

/** Formats a time in milliseconds since the epoch as RFC 3339 with second precision, like Kubernetes does. */
export function timestampOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
