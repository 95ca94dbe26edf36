import { type Clock, systemClock } from '../time/clock.ts';
import { openCredentials } from './credentials.ts';
import { isExpired, isKubeError } from './kube-error.ts';
import type { KubeMetrics } from './kube-metrics.ts';
import type { AnyObject, ObjectName } from './object.ts';
import { apiVersionOf, collectionPath, objectPath, type Resource } from './resource.ts';
import { createTransport, type Transport, toKubeError } from './transport.ts';
import { readWatch, type WatchEvent } from './watch-stream.ts';

/** Selects objects of a kind. Without any field: all. */
export type Selection = {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** The server sends only `metadata`. */
  readonly metadataOnly?: boolean | undefined;
};

export type Waiting = {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** `leases`: uses connections that are reserved for the Lease. */
  readonly over?: 'leases';
};

type ApplyOptions = Waiting & {
  readonly fieldManager: string;
  /** Takes fields from other managers instead of failing with 409. Default false. */
  readonly force?: boolean;
  readonly subresource?: 'status';
  /** Validates and defaults without storing. */
  readonly dryRun?: boolean;
};

type DeletePreconditions = { readonly uid?: string; readonly resourceVersion?: string };

/** A client of the API server with one identity. All functions reject with a KubeError, or with the signal's reason. */
export type KubeClient = {
  readonly server: string;
  /** Namespace of the kubeconfig's context; in a pod, its own. */
  readonly namespace: string;
  /** Returns the object, or undefined if it does not exist. */
  readonly get: <T = AnyObject>(resource: Resource, name: ObjectName, options?: Waiting) => Promise<T | undefined>;
  /**
   * Lists all selected objects from the quorum of etcd, in chunks. Keeps only the results of `project`, so that 100,000
   * objects are never in memory whole. @throws KubeError 410 when the list took longer than the server keeps history
   */
  readonly list: <T, P>(
    resource: Resource,
    project: (object: T) => P,
    options?: Selection & Waiting & { readonly limit?: number },
  ) => Promise<{ readonly items: P[]; readonly resourceVersion: string }>;
  /** Yields changes after `resourceVersion` in order, with bookmarks, until the server ends the watch. No retries. */
  readonly watch: <T>(
    resource: Resource,
    options: Selection & {
      readonly resourceVersion?: string | undefined;
      readonly signal?: AbortSignal | undefined;
      /** When the server ends the watch. Default 240. */
      readonly timeoutSeconds?: number;
      /** Time without a byte after which the connection counts as dead. Default 90,000. */
      readonly inactivityMs?: number;
    },
  ) => AsyncGenerator<WatchEvent<T>, void, undefined>;
  /** Applies server-side. `body` needs no apiVersion and kind. @throws KubeError 409 with `conflictManagers` */
  readonly apply: <T = AnyObject>(
    resource: Resource,
    name: ObjectName,
    body: object,
    options: ApplyOptions,
  ) => Promise<T>;
  /** Sends a JSON merge patch. `metadata.resourceVersion` and `metadata.uid` in it are preconditions (409). */
  readonly mergePatch: <T = AnyObject>(
    resource: Resource,
    name: ObjectName,
    patch: object,
    options?: Waiting & { readonly subresource?: 'status' },
  ) => Promise<T>;
  /** Deletes the object. Returns false if it did not exist. @throws KubeError 409 when a precondition does not hold */
  readonly remove: (
    resource: Resource,
    name: ObjectName,
    preconditions?: DeletePreconditions,
    options?: Waiting,
  ) => Promise<boolean>;
  /** Creates the object. @throws KubeError 409 AlreadyExists */
  readonly create: <T = AnyObject>(resource: Resource, name: ObjectName, body: object, options?: Waiting) => Promise<T>;
  /** Replaces the whole object; `metadata.resourceVersion` in the body is the precondition (409). */
  readonly update: <T = AnyObject>(resource: Resource, name: ObjectName, body: object, options?: Waiting) => Promise<T>;
  /** Returns the number of connections opened so far. */
  readonly connectionsOpened: () => number;
  readonly close: () => Promise<void>;
};

type ListPage<T> = {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[] | null;
};

/** Objects in one chunk of a list: client-go's default. */
const PAGE = 500;

/** Content types for metadata only (Kubernetes API concepts, "Metadata-only fetches"). */
const METADATA = { list: metadataAs('PartialObjectMetadataList'), watch: metadataAs('PartialObjectMetadata') };

function metadataAs(kind: string): string {
  // Without an alternative: a server without support refuses (406) and never sends data that must not be here.
  return `application/json;as=${kind};g=meta.k8s.io;v=v1`;
}

/** Number of tries for a list that expires between two chunks. */
const LIST_TRIES = 3;

/** Returns the body with the fields that name the object. */
function named(resource: Resource, { namespace, name }: ObjectName, body: object) {
  const { metadata } = body as { metadata?: object };
  return {
    ...body,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { ...metadata, name, ...(resource.namespaced ? { namespace } : {}) },
  };
}

/** Returns undefined if the object of the call does not exist. */
async function unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

/** Creates the list of a client. Starts over when it expires between two chunks. */
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

/** Creates the watch of a client. */
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
 * Opens a client; connects at the first call.
 *
 * @param options.kubeconfig path; absent: `KUBECONFIG`, the user's default, then the pod's service account
 * @throws when there is no usable kubeconfig
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
