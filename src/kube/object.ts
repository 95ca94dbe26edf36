/** The fields of `metadata` that this project reads, for its own kinds and Kubernetes'. */
export type ObjectMeta = {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Absent on kinds without a spec, such as Secrets. */
  readonly generation?: number | undefined;
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly finalizers?: readonly string[] | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
};

/** Any object of the API server. */
export type AnyObject = { readonly metadata: ObjectMeta };

/** An object with a spec that users write and a status that the controller writes. */
export type KubeObject<Spec = unknown, Status = unknown> = AnyObject & {
  readonly spec: Spec;
  readonly status?: Status | undefined;
};

/** Name of an object; cluster-scoped kinds have no `namespace`. */
export type ObjectName = { readonly namespace?: string | undefined; readonly name: string };

/** Returns `namespace/name`, or `name` for cluster-scoped kinds: client-go's MetaNamespaceKey. */
export function keyOf(object: ObjectName): string {
  return object.namespace ? `${object.namespace}/${object.name}` : object.name;
}

/**
 * Returns the parts of an object that a cache needs: without managedFields and annotations, which are most of its size
 * (kubectl keeps a copy of the manifest in one).
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
