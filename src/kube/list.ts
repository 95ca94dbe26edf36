import type { KubeClient, Selection, Waiting } from './client.ts';
import { isExpired, KubeError, NO_ANSWER } from './kube-error.ts';
import type { AnyObject } from './object.ts';
import { collectionPath, type Resource } from './resource.ts';
import type { Transport } from './transport.ts';

export type List = <T, P>(
  resource: Resource,
  project: (object: T) => P,
  options?: Selection &
    Waiting & {
      /** The number of objects in each chunk. The default is 500. */
      readonly limit?: number;
      /**
       * If true, receives the objects as a stream from the server's watch cache, if the server supports it. A stream
       * uses much less memory than chunks, which the server has to read from etcd. An object that changes in the
       * meantime may be newer than the other objects. Defaults to false.
       */
      readonly streamed?: boolean;
    },
) => Promise<{ readonly items: P[]; readonly resourceVersion: string }>;

type ListPage<T> = {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[] | null;
};

/** The number of objects in each chunk of a list. Same default as client-go. */
const PAGE = 500;

/** Content types for requests that only return metadata. See "Metadata-only fetches" in the Kubernetes API concepts. */
export const METADATA = { list: metadataAs('PartialObjectMetadataList'), watch: metadataAs('PartialObjectMetadata') };

/** The annotation of the bookmark after which the watch will continue with changes. See "Streaming lists" there. */
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** The number of retries if a list expires between two chunks. */
const LIST_TRIES = 3;

/** A streamed list without data for this long is given up. In milliseconds. */
const STREAM_INACTIVITY_MS = 30_000;

function metadataAs(kind: string): string {
  // Only accept this type so that a server without support for it returns 406 instead of the full data.
  return `application/json;as=${kind};g=meta.k8s.io;v=v1`;
}

/**
 * Creates the list function of a client. If a streamed list fails, the objects are listed in chunks instead, which is
 * also what client-go does. If the server refuses the first streamed list, it is not requested again.
 */
export function createList(call: Transport['call'], watch: KubeClient['watch']): List {
  const listChunks = createChunkedList(call);
  let isRefused = false;
  return async (resource, project, options = {}) => {
    if (!options.streamed || isRefused) return await listChunks(resource, project, options);
    try {
      return await listStream(watch, resource, project, options);
    } catch (error) {
      options.signal?.throwIfAborted();
      isRefused = error instanceof KubeError && (error.status === 400 || error.status === 422);
      return await listChunks(resource, project, options);
    }
  };
}

/**
 * Creates the list using a watch that starts with all objects. Changes in the meantime are received together with the
 * objects.
 */
async function listStream<T, P>(
  watch: KubeClient['watch'],
  resource: Resource,
  project: (object: T) => P,
  { namespace, labelSelector, fieldSelector, metadataOnly, signal }: Selection & Waiting,
): Promise<{ items: P[]; resourceVersion: string }> {
  const found = new Map<string, P>();
  const selection = { namespace, labelSelector, fieldSelector, metadataOnly, signal };
  const options = { ...selection, sendInitialEvents: true, inactivityMs: STREAM_INACTIVITY_MS };
  for await (const { type, object } of watch<AnyObject>(resource, options)) {
    const { uid, annotations, resourceVersion } = object.metadata;
    if (type === 'DELETED') found.delete(uid);
    else if (type !== 'BOOKMARK') found.set(uid, project(object as T));
    else if (annotations?.[INITIAL_EVENTS_END] === 'true') return { items: [...found.values()], resourceVersion };
  }
  const path = collectionPath(resource, namespace);
  throw new KubeError({
    call: `LIST ${path}`,
    status: NO_ANSWER,
    reason: 'MalformedAnswer',
    detail: 'ended too early',
  });
}

/**
 * Creates a function that uses chunks to list the objects. If a list expires between two chunks, it is started again.
 */
function createChunkedList(call: Transport['call']): List {
  return async (resource, project, options = {}) => {
    const { namespace, labelSelector, fieldSelector, metadataOnly, limit = PAGE, signal, timeoutMs, over } = options;
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
          compressed: true,
          signal,
          timeoutMs,
          over,
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
