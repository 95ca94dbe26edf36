/** What this project reads of `metadata`; wide enough for every kind, its own and Kubernetes'. */
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

/** Anything that the API server keeps. */
export type AnyObject = { readonly metadata: ObjectMeta };

/** An object with a spec that users write and a status that the controller writes. */
export type KubeObject<Spec = unknown, Status = unknown> = AnyObject & {
  readonly spec: Spec;
  readonly status?: Status | undefined;
};

/** Which object: `namespace` is left out for kinds of the whole cluster. */
export type ObjectName = { readonly namespace?: string | undefined; readonly name: string };

/** `namespace/name`, or `name` for kinds of the whole cluster: client-go's MetaNamespaceKey. */
export function keyOf(object: ObjectName): string {
  return object.namespace ? `${object.namespace}/${object.name}` : object.name;
}

/**
 * The parts of an object that reconciling needs, as a cache should hold it: without managedFields and annotations,
 * which are most of its size (kubectl keeps a copy of the manifest in one).
 *
 * @param annotations names of those to keep
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
