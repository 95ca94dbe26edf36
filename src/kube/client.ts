import { type Clock, systemClock } from '../time/clock.ts';
import { openCredentials } from './credentials/credentials.ts';
import type { KubeSource } from './credentials/kubeconfig.ts';
import { isMissing } from './kube-error.ts';
import type { KubeMetrics } from './kube-metrics.ts';
import { createList, type List, METADATA } from './list.ts';
import type { AnyObject, ObjectName } from './object.ts';
import { apiVersionOf, collectionPath, objectPath, type Resource } from './resource.ts';
import { createTransport, type Transport, toKubeError } from './transport.ts';
import { readWatch, type WatchEvent } from './watch-stream.ts';

/** Used to select a kind's objects. Without any fields, all objects are selected. */
export type Selection = {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** True if the server should only return the `metadata` of each object. */
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
  /**
   * If true, overwrites fields owned by other managers. If false, a 409 error is returned instead. Defaults to false.
   */
  readonly force?: boolean;
  readonly subresource?: 'status';
  /** If true, only validates the object and sets its defaults, without storing it. */
  readonly dryRun?: boolean;
};

type DeletePreconditions = { readonly uid?: string; readonly resourceVersion?: string };

/**
 * KubeClient is a client for the API server. If a function fails, it will reject with a KubeError or with the reason of
 * the signal.
 */
export type KubeClient = {
  readonly server: string;
  /**
   * The namespace of the current context in the kubeconfig. In a pod, this is the pod's namespace. Undefined if
   * neither is available.
   */
  readonly namespace: string | undefined;
  /** Returns the object, or undefined if it does not exist. */
  readonly get: <T = AnyObject>(resource: Resource, name: ObjectName, options?: Waiting) => Promise<T | undefined>;
  /**
   * Lists all of the selected objects. The result is at least as new as the call. Only the results of `project` are
   * kept, so there are never 100,000 full objects in memory.
   * @throws KubeError 410 if the list takes longer than the server keeps its history
   */
  readonly list: List;
  /**
   * Returns all changes after `resourceVersion` in order (including bookmarks), until the server closes the watch. Does
   * not retry on errors.
   */
  readonly watch: <T>(
    resource: Resource,
    options: Selection & {
      readonly resourceVersion?: string | undefined;
      readonly signal?: AbortSignal | undefined;
      /** The time after which the server should close the watch. The default is 240. */
      readonly timeoutSeconds?: number;
      /** If no data is received for this time, the connection is considered dead. The default is 90,000. */
      readonly inactivityMs?: number;
      /**
       * If true, the watch starts with all objects (at least as new as the call) instead of a `resourceVersion`. The
       * initial objects are followed by a bookmark with the `k8s.io/initial-events-end` annotation.
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
   * Sends a patch in JSON merge patch format. When set, `metadata.resourceVersion` and `metadata.uid` act as
   * preconditions, and a mismatch results in a 409 error.
   */
  readonly mergePatch: <T = AnyObject>(
    resource: Resource,
    name: ObjectName,
    patch: object,
    options?: Waiting & { readonly subresource?: 'status' },
  ) => Promise<T>;
  /** Deletes the object or returns false if it didn't exist. @throws KubeError 409 if a precondition does not match */
  readonly remove: (
    resource: Resource,
    name: ObjectName,
    preconditions?: DeletePreconditions,
    options?: Waiting,
  ) => Promise<boolean>;
  /** Creates the object. @throws KubeError 409 AlreadyExists */
  readonly create: <T = AnyObject>(resource: Resource, name: ObjectName, body: object, options?: Waiting) => Promise<T>;
  /**
   * Replaces the object as a whole. If the body contains `metadata.resourceVersion`, it is used as a precondition, and
   * a mismatch results in a 409 error.
   */
  readonly update: <T = AnyObject>(resource: Resource, name: ObjectName, body: object, options?: Waiting) => Promise<T>;
  /** Returns the number of requests that RBAC has refused so far. */
  readonly refusals: () => number;
  /** Returns the number of connections opened so far. */
  readonly connectionsOpened: () => number;
  readonly close: () => Promise<void>;
};

/** The time to wait for the start of a watch, in milliseconds. */
const START_WITHIN_MS = 30_000;

/** Returns the body and the fields that identify the object. */
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
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Creates the watch function of a client. */
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
      timeoutMs: Math.min(inactivityMs, START_WITHIN_MS),
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
 * Creates a client. The client only opens a connection when the first request is sent.
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
  const { call, stream, refusals } = createTransport(credentials, clock, random, options.metrics);
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
    refusals,
    connectionsOpened: credentials.connectionsOpened,
    close: credentials.close,
  };
}
