import { type Clock, systemClock } from '../time/clock.ts';
import { openCredentials } from './credentials.ts';
import { isExpired, isKubeError } from './kube-error.ts';
import type { KubeMetrics } from './kube-metrics.ts';
import type { AnyObject, ObjectName } from './object.ts';
import { apiVersionOf, collectionPath, objectPath, type Resource } from './resource.ts';
import { createTransport, type Transport, toKubeError } from './transport.ts';
import { readWatch, type WatchEvent } from './watch-stream.ts';

/** Selects the objects of a kind. If there are no fields, all objects are selected. */
export type Selection = {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** If true, the server only returns the `metadata` of each object. */
  readonly metadataOnly?: boolean | undefined;
};

export type Waiting = {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** Set this to `leases` to use connections that are reserved for the Lease. */
  readonly over?: 'leases';
};

type ApplyOptions = Waiting & {
  readonly fieldManager: string;
  /**
   * If true, fields that are owned by other managers are overwritten instead of returning a 409 error. Defaults to
   * false.
   */
  readonly force?: boolean;
  readonly subresource?: 'status';
  /** If true, the object is validated and defaulted but is not stored. */
  readonly dryRun?: boolean;
};

type DeletePreconditions = { readonly uid?: string; readonly resourceVersion?: string };

/**
 * KubeClient is a client for the API server. All functions reject with a KubeError or with the reason of the signal.
 */
export type KubeClient = {
  readonly server: string;
  /** The namespace of the current context in the kubeconfig. In a pod, this is the namespace of the pod. */
  readonly namespace: string;
  /** Returns the object, or undefined if it does not exist. */
  readonly get: <T = AnyObject>(resource: Resource, name: ObjectName, options?: Waiting) => Promise<T | undefined>;
  /**
   * Lists all selected objects from the quorum of etcd in chunks. Only the results of `project` are kept, so that
   * 100,000 full objects are not in memory at the same time. @throws KubeError 410 if the list takes longer than the
   * server keeps its history
   */
  readonly list: <T, P>(
    resource: Resource,
    project: (object: T) => P,
    options?: Selection & Waiting & { readonly limit?: number },
  ) => Promise<{ readonly items: P[]; readonly resourceVersion: string }>;
  /**
   * Returns the changes after `resourceVersion` in order, including bookmarks, until the server closes the watch. The
   * watch is not retried.
   */
  readonly watch: <T>(
    resource: Resource,
    options: Selection & {
      readonly resourceVersion?: string | undefined;
      readonly signal?: AbortSignal | undefined;
      /** The time after which the server closes the watch. Defaults to 240. */
      readonly timeoutSeconds?: number;
      /** The connection is considered dead if there is no data for this time. Defaults to 90,000. */
      readonly inactivityMs?: number;
    },
  ) => AsyncGenerator<WatchEvent<T>, void, undefined>;
  /**
   * Sends a server-side apply request. The `body` does not need to include apiVersion and kind. @throws KubeError 409
   * with `conflictManagers`
   */
  readonly apply: <T = AnyObject>(
    resource: Resource,
    name: ObjectName,
    body: object,
    options: ApplyOptions,
  ) => Promise<T>;
  /**
   * Sends a JSON merge patch. If `metadata.resourceVersion` or `metadata.uid` is set, it is used as a precondition and
   * a 409 error is returned if it does not match.
   */
  readonly mergePatch: <T = AnyObject>(
    resource: Resource,
    name: ObjectName,
    patch: object,
    options?: Waiting & { readonly subresource?: 'status' },
  ) => Promise<T>;
  /** Deletes the object. Returns false if it did not exist. @throws KubeError 409 if a precondition does not match */
  readonly remove: (
    resource: Resource,
    name: ObjectName,
    preconditions?: DeletePreconditions,
    options?: Waiting,
  ) => Promise<boolean>;
  /** Creates the object. @throws KubeError 409 AlreadyExists */
  readonly create: <T = AnyObject>(resource: Resource, name: ObjectName, body: object, options?: Waiting) => Promise<T>;
  /**
   * Replaces the whole object. The `metadata.resourceVersion` in the body is used as a precondition, so a 409 error is
   * returned if it does not match.
   */
  readonly update: <T = AnyObject>(resource: Resource, name: ObjectName, body: object, options?: Waiting) => Promise<T>;
  /** Returns the number of connections that have been opened so far. */
  readonly connectionsOpened: () => number;
  readonly close: () => Promise<void>;
};

type ListPage<T> = {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[] | null;
};

/** The number of objects in each chunk of a list. This is the default of client-go. */
const PAGE = 500;

/**
 * The content types for requests that only return metadata. See "Metadata-only fetches" in the Kubernetes API concepts.
 */
const METADATA = { list: metadataAs('PartialObjectMetadataList'), watch: metadataAs('PartialObjectMetadata') };

function metadataAs(kind: string): string {
  // We only accept this type, so that a server without support for it returns 406 instead of the full data.
  return `application/json;as=${kind};g=meta.k8s.io;v=v1`;
}

/** The number of attempts for a list that expires between two chunks. */
const LIST_TRIES = 3;

/** Returns the body with the fields that identify the object. */
function named(resource: Resource, { namespace, name }: ObjectName, body: object) {
  const { metadata } = body as { metadata?: object };
  return {
    ...body,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { ...metadata, name, ...(resource.namespaced ? { namespace } : {}) },
  };
}

/** Returns undefined if the object does not exist. */
async function unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

/** Creates the list function of a client. The list is started again if it expires between two chunks. */
function createList(call: Transport['call']): KubeClient['list'] {
  return async (resource, project, options = {}) => {
    const { namespace, labelSelector, fieldSelector, metadataOnly, limit = PAGE, signal, timeoutMs } = options;
    type Item = Parameters<typeof project>[0];

    async function listOnce() {
      const items: ReturnType<typeof project>[] = [];
      let next: string | undefined;
      for (;;) {
        const page: ListPage<Item> = await call({
          method: 'GET',
          path: collectionPath(resource, namespace),
          query: { labelSelector, fieldSelector, limit: `${limit}`, continue: next },
          accept: metadataOnly ? METADATA.list : undefined,
          signal,
          timeoutMs,
        });
        for (const item of page.items ?? []) items.push(project(item));
        next = page.metadata.continue;
        if (!next) return { items, resourceVersion: page.metadata.resourceVersion };
      }
    }

    for (let tries = 1; ; tries++) {
      try {
        return await listOnce();
      } catch (error) {
        if (!isExpired(error) || tries === LIST_TRIES) throw error;
      }
    }
  };
}

/** Creates the watch function of a client. */
function createWatch(stream: Transport['stream'], clock: Clock): KubeClient['watch'] {
  return async function* <T>(resource: Resource, options: Parameters<KubeClient['watch']>[1]) {
    const { namespace, labelSelector, fieldSelector, metadataOnly, resourceVersion, signal } = options;
    const { timeoutSeconds = 240, inactivityMs = 90_000 } = options;
    const path = collectionPath(resource, namespace);
    const query = { labelSelector, fieldSelector, resourceVersion, timeoutSeconds: `${timeoutSeconds}` };
    const body = await stream({
      method: 'GET',
      path,
      query: { ...query, watch: '1', allowWatchBookmarks: 'true' },
      accept: metadataOnly ? METADATA.watch : undefined,
      signal,
    });
    try {
      yield* readWatch<T>(body, { call: `WATCH ${path}`, clock, inactivityMs });
    } catch (error) {
      signal?.throwIfAborted();
      throw toKubeError(`WATCH ${path}`, error);
    }
  };
}

/**
 * Creates a client. The connection is opened when the first request is sent.
 *
 * @param options.kubeconfig the path of the kubeconfig. If this is not set, `KUBECONFIG` is used, followed by the
 * default path of the user and the service account of the pod.
 * @throws if there is no kubeconfig that can be used
 */
export function connect(
  options: {
    readonly kubeconfig?: string | undefined;
    readonly clock?: Clock;
    readonly random?: () => number;
    readonly metrics?: KubeMetrics;
  } = {},
): KubeClient {
  const { clock = systemClock, random = Math.random } = options;
  const credentials = openCredentials(options.kubeconfig, clock.nowMs);
  const { call, stream } = createTransport(credentials, clock, random, options.metrics);
  return {
    server: credentials.server,
    namespace: credentials.namespace,
    get: async <T>(resource: Resource, name: ObjectName, waiting?: Waiting) =>
      unlessMissing(call<T>({ method: 'GET', path: objectPath(resource, name), ...waiting })),
    list: createList(call),
    watch: createWatch(stream, clock),
    apply: (resource, name, body, { fieldManager, force = false, subresource, dryRun, ...waiting }) =>
      call({
        method: 'PATCH',
        path: objectPath(resource, name, subresource),
        query: { fieldManager, force: `${force}`, dryRun: dryRun ? 'All' : undefined },
        contentType: 'application/apply-patch+yaml',
        body: named(resource, name, body),
        ...waiting,
      }),
    mergePatch: (resource, name, body, { subresource, ...waiting } = {}) =>
      call({
        method: 'PATCH',
        path: objectPath(resource, name, subresource),
        contentType: 'application/merge-patch+json',
        body,
        ...waiting,
      }),
    remove: async (resource, name, preconditions = {}, waiting = {}) => {
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', preconditions };
      const path = objectPath(resource, name);
      return (await unlessMissing(call({ method: 'DELETE', path, body, ...waiting }))) !== undefined;
    },
    create: (resource, name, body, waiting) => {
      const path = collectionPath(resource, name.namespace);
      return call({ method: 'POST', path, body: named(resource, name, body), ...waiting });
    },
    update: (resource, name, body, waiting) =>
      call({ method: 'PUT', path: objectPath(resource, name), body: named(resource, name, body), ...waiting }),
    connectionsOpened: credentials.connectionsOpened,
    close: credentials.close,
  };
}
