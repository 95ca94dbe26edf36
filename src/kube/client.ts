import { type Clock, systemClock } from '../time/clock.ts';
import { openCredentials } from './credentials/credentials.ts';
import type { KubeSource } from './credentials/kubeconfig.ts';
import { isKubeError } from './kube-error.ts';
import type { KubeMetrics } from './kube-metrics.ts';
import { createList, type List, METADATA } from './list.ts';
import type { AnyObject, ObjectName } from './object.ts';
import { apiVersionOf, collectionPath, objectPath, type Resource } from './resource.ts';
import { createTransport, type Transport, toKubeError } from './transport.ts';
import { readWatch, type WatchEvent } from './watch-stream.ts';

/** Selects objects of a kind. Without any fields, all objects are selected. */
export type Selection = {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Whether the server should only return each object's `metadata`. */
  readonly metadataOnly?: boolean | undefined;
};

export type Waiting = {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** Set to `leases` to use connections reserved for the Lease. */
  readonly over?: 'leases';
};

type ApplyOptions = Waiting & {
  readonly fieldManager: string;
  /** Whether to overwrite fields owned by other managers, rather than return a 409 error. Defaults to false. */
  readonly force?: boolean;
  readonly subresource?: 'status';
  /** Whether to validate and default the object without storing it. */
  readonly dryRun?: boolean;
};

type DeletePreconditions = { readonly uid?: string; readonly resourceVersion?: string };

/**
 * KubeClient is a client for the API server. All of its functions reject with either a KubeError or the signal's
 * reason.
 */
export type KubeClient = {
  readonly server: string;
  /**
   * Namespace of the current kubeconfig context or, in a pod, the pod's namespace. Undefined if neither is available.
   */
  readonly namespace: string | undefined;
  /** Returns the object, or undefined if it does not exist. */
  readonly get: <T = AnyObject>(resource: Resource, name: ObjectName, options?: Waiting) => Promise<T | undefined>;
  /**
   * Lists all selected objects, at least as new as the call. Only the results of `project` are kept, so we never hold
   * 100,000 full objects in memory.
   * @throws KubeError 410 if the list takes longer than the server keeps its history
   */
  readonly list: List;
  /**
   * Returns changes after `resourceVersion` in order, including bookmarks, until the server closes the watch. There are
   * no retries.
   */
  readonly watch: <T>(
    resource: Resource,
    options: Selection & {
      readonly resourceVersion?: string | undefined;
      readonly signal?: AbortSignal | undefined;
      /** Time after which the server closes the watch. Defaults to 240. */
      readonly timeoutSeconds?: number;
      /** After this long without any data, the connection is considered dead. Defaults to 90,000. */
      readonly inactivityMs?: number;
      /**
       * Whether to begin with all objects, at least as new as the call, instead of a `resourceVersion`. A bookmark with
       * the annotation `k8s.io/initial-events-end` follows them.
       */
      readonly sendInitialEvents?: boolean;
    },
  ) => AsyncGenerator<WatchEvent<T>, void, undefined>;
  /**
   * Sends a server-side apply request. `body` doesn't need to include apiVersion and kind.
   * @throws KubeError 409 with `conflictManagers`
   */
  readonly apply: <T = AnyObject>(
    resource: Resource,
    name: ObjectName,
    body: object,
    options: ApplyOptions,
  ) => Promise<T>;
  /**
   * Sends a JSON merge patch. When set, `metadata.resourceVersion` and `metadata.uid` act as preconditions, and a
   * mismatch results in a 409 error.
   */
  readonly mergePatch: <T = AnyObject>(
    resource: Resource,
    name: ObjectName,
    patch: object,
    options?: Waiting & { readonly subresource?: 'status' },
  ) => Promise<T>;
  /** Deletes the object, returning false if it didn't exist. @throws KubeError 409 if a precondition does not match */
  readonly remove: (
    resource: Resource,
    name: ObjectName,
    preconditions?: DeletePreconditions,
    options?: Waiting,
  ) => Promise<boolean>;
  /** Creates the object. @throws KubeError 409 AlreadyExists */
  readonly create: <T = AnyObject>(resource: Resource, name: ObjectName, body: object, options?: Waiting) => Promise<T>;
  /**
   * Replaces the whole object. `metadata.resourceVersion` in the body acts as a precondition, and a mismatch results in
   * a 409 error.
   */
  readonly update: <T = AnyObject>(resource: Resource, name: ObjectName, body: object, options?: Waiting) => Promise<T>;
  /** Returns the number of connections opened so far. */
  readonly connectionsOpened: () => number;
  readonly close: () => Promise<void>;
};

/** Returns the body along with the fields identifying the object. */
function named(resource: Resource, { namespace, name }: ObjectName, body: object) {
  const { metadata } = body as { metadata?: object };
  return {
    ...body,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { ...metadata, name, ...(resource.namespaced ? { namespace } : {}) },
  };
}

/** Returns undefined if object doesn't exist. */
async function unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

/** Creates a client's watch function. */
function createWatch(stream: Transport['stream'], clock: Clock): KubeClient['watch'] {
  return async function* <T>(resource: Resource, options: Parameters<KubeClient['watch']>[1]) {
    const { namespace, labelSelector, fieldSelector, metadataOnly, resourceVersion, signal } = options;
    const { timeoutSeconds = 240, inactivityMs = 90_000, sendInitialEvents = false } = options;
    const initial = sendInitialEvents ? { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' } : {};
    const path = collectionPath(resource, namespace);
    const query = { labelSelector, fieldSelector, resourceVersion, timeoutSeconds: `${timeoutSeconds}` };
    const body = await stream({
      method: 'GET',
      path,
      query: { ...query, ...initial, watch: '1', allowWatchBookmarks: 'true' },
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
 * Creates a client, which won't open a connection until the first request is sent.
 *
 * @throws if there is neither a usable kubeconfig nor a service account
 */
export function connect(
  options: KubeSource & {
    readonly clock?: Clock;
    readonly random?: () => number;
    readonly metrics?: KubeMetrics;
  } = {},
): KubeClient {
  const { clock = systemClock, random = Math.random } = options;
  const credentials = openCredentials(options, clock.nowMs);
  const { call, stream } = createTransport(credentials, clock, random, options.metrics);
  const watch = createWatch(stream, clock);
  return {
    server: credentials.server,
    namespace: credentials.namespace,
    get: async <T>(resource: Resource, name: ObjectName, waiting?: Waiting) =>
      unlessMissing(call<T>({ method: 'GET', path: objectPath(resource, name), ...waiting })),
    list: createList(call, watch),
    watch,
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
