/** The `metadata` fields that are used by this project. */
export type ObjectMeta = {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid: string;
  readonly resourceVersion: string;
  /** This is not set for kinds without a spec, for example Secrets. */
  readonly generation?: number | undefined;
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly finalizers?: readonly string[] | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
};

/** An object of any kind that is returned by the API server. */
export type AnyObject = { readonly metadata: ObjectMeta };

/** An object with a spec, which is written by users, and a status, which is written by the controller. */
export type KubeObject<Spec = unknown, Status = unknown> = AnyObject & {
  readonly spec: Spec;
  readonly status?: Status | undefined;
};

/** The name of an object. The `namespace` is not set for cluster-scoped kinds. */
export type ObjectName = { readonly namespace?: string | undefined; readonly name: string };

/**
 * Returns the key of an object in the form `namespace/name`, or `name` for cluster-scoped kinds. This is the same as
 * MetaNamespaceKey in client-go.
 */
export function keyOf(object: ObjectName): string {
  return object.namespace ? `${object.namespace}/${object.name}` : object.name;
}

/**
 * Returns the parts of an object that are needed in a cache. The managedFields and annotations are removed because they
 * account for most of the size. For example, kubectl stores a copy of the manifest in an annotation.
 *
 * @param annotations the names of annotations that should be kept
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
