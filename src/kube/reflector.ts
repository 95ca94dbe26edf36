import type { Logger } from '../telemetry/log.ts';
import { type Backoff, backoffMs, jittered } from '../time/backoff.ts';
import { type Clock, sleep } from '../time/clock.ts';
import type { KubeClient, Selection } from './client.ts';
import { isExpired } from './kube-error.ts';
import type { AnyObject } from './object.ts';
import { type ChangeHandler, createReflected, type Reflected } from './reflected.ts';
import { collectionPath, type Resource } from './resource.ts';
import { isOlder } from './resource-version.ts';
import type { Indexers } from './store.ts';

export type Reflector<P> = Pick<Reflected<P>, 'store' | 'subscribe'> & {
  readonly resource: Resource;
  /**
   * Keeps the cache up to date until the signal is aborted. Errors are retried. This function must only be called once.
   */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Returns true if the first list has completed. */
  readonly hasSynced: () => boolean;
  /** Resolves when the first list has completed. */
  readonly synced: Promise<void>;
  /**
   * The time of the last event, bookmark or list from the API server. It is comparable to `nowMs` of the clock.
   * Undefined if there was no response so far.
   */
  readonly lastHeardMs: () => number | undefined;
  /**
   * Lists all objects again. Resolves when the result of a list that was started after this call has been applied.
   * Rejects if `run` has ended.
   */
  readonly relist: () => Promise<void>;
};

type ReflectorOptions<T extends AnyObject, P> = Selection & {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  /**
   * Returns the value that is kept in the cache, or undefined if the object is not needed. This must be a pure
   * function. The value should be small, because there may be 100,000 values in memory.
   */
  readonly project: (object: T) => P | undefined;
  readonly indexers?: Indexers<P>;
  readonly onChange?: ChangeHandler<P>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
  /** The backoff between retries. Defaults to 200 milliseconds, increasing up to 10 seconds. */
  readonly backoff?: Backoff;
  /**
   * The duration of a watch. Defaults to 240 seconds. A jitter of up to 50% is added so that the replicas do not all
   * reconnect at the same time.
   */
  readonly watchTimeoutSeconds?: number;
  /**
   * A watch is considered dead if there is no data for this time. Defaults to 90,000, because the server sends a
   * bookmark about once per minute.
   */
  readonly inactivityMs?: number;
  /**
   * The time between two relists. The relists ensure that lost events do not have a lasting effect. Defaults to one
   * hour with jitter.
   */
  readonly relistEveryMs?: number;
};

/** The number of consecutive watches without an event after which all objects are listed again. */
const FRUITLESS_WATCHES = 4;

/**
 * The number of lists that are rejected because they are older than the known data. They may be from a server that is
 * out of date. The next list is accepted because etcd may have been restored from a backup.
 */
const OLDER_LISTS = 3;

/** If a watch ends before this time without an event, it is considered a failure. The value is in milliseconds. */
const SHORTEST_WATCH_MS = 1_000;

const BACKOFF: Backoff = { firstMs: 200, mostMs: 10_000 };

/** The API resource that a reflector reads and the state that it updates. */
type Source<P> = {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  readonly selection: Selection;
  readonly reflected: Reflected<P>;
  readonly clock: Clock;
  readonly log: Logger;
};

/**
 * Creates the function that lists all objects and replaces the state. It rejects if the list is older than the state.
 */
function createLister<P>({ client, resource, selection, reflected, log }: Source<P>, onAnswer: () => void) {
  let olderLists = 0;
  return async (signal: AbortSignal): Promise<void> => {
    // A list that is accepted although it is older must not reuse known objects. See `projectAnew` for the reason.
    const project = olderLists < OLDER_LISTS ? reflected.project : reflected.projectAnew;
    const { items, resourceVersion } = await client.list(resource, project, { ...selection, signal });
    onAnswer();
    const cursor = reflected.cursor();
    const anew = cursor !== undefined && isOlder(resourceVersion, cursor);
    if (anew && ++olderLists <= OLDER_LISTS) throw new Error('the API server is behind what was seen before');
    if (anew) log.warn({ resourceVersion }, 'accepting an older list: the API server went back in time');
    olderLists = 0;
    reflected.replace(items, resourceVersion, { anew });
  };
}

/** Applies the events of one watch until the server closes it. Rejects if the watch is closed too early. */
async function watchOnce<P>(
  { client, resource, selection, reflected, clock }: Source<P>,
  onProgress: () => void,
  options: { readonly signal: AbortSignal; readonly timeoutSeconds: number; readonly inactivityMs: number },
): Promise<void> {
  const beganMs = clock.nowMs();
  let events = 0;
  const resourceVersion = reflected.cursor();
  for await (const event of client.watch<AnyObject>(resource, { ...selection, resourceVersion, ...options })) {
    events++;
    onProgress();
    reflected.apply(event);
  }
  if (events === 0 && clock.nowMs() - beganMs < SHORTEST_WATCH_MS) throw new Error('the watch ended at once');
  // The watch was closed by the server after its timeout, which is not a failure.
  onProgress();
}

/**
 * Keeps track of the callers that are waiting for a list. When a list succeeds, it resolves the callers that were
 * waiting when it started. If it fails, they continue to wait.
 */
function createListWaiters() {
  let waiting: PromiseWithResolvers<void>[] = [];
  let ended = false;
  const endedError = () => new Error('the reflector has ended');
  return {
    isEmpty: () => waiting.length === 0,
    wait(): Promise<void> {
      if (ended) return Promise.reject(endedError());
      const waiter = Promise.withResolvers<void>();
      waiting.push(waiter);
      return waiter.promise;
    },
    async serve(list: () => Promise<void>): Promise<void> {
      const served = waiting;
      waiting = [];
      try {
        await list();
      } catch (error) {
        waiting.push(...served);
        throw error;
      }
      for (const { resolve } of served) resolve();
    },
    end(): void {
      ended = true;
      for (const { reject } of waiting.splice(0)) reject(endedError());
    },
  };
}

/**
 * Creates a cache of one kind, which is filled by a list and updated by a watch. It combines the Reflector of client-go
 * with the store of its shared informer. Objects are projected before they are stored.
 */
export function createReflector<T extends AnyObject, P>(options: ReflectorOptions<T, P>): Reflector<P> {
  const { client, resource, clock, random = Math.random, backoff = BACKOFF, relistEveryMs = 3_600_000 } = options;
  const { watchTimeoutSeconds = 240, inactivityMs = 90_000, indexers } = options;
  const { namespace, labelSelector, fieldSelector, metadataOnly } = options;
  const selection = { namespace, labelSelector, fieldSelector, metadataOnly };
  const log = options.log.child({ resource: collectionPath(resource, namespace) });
  const reflected = createReflected<P>({ project: object => options.project(object as T), indexers, log });
  if (options.onChange !== undefined) reflected.subscribe(options.onChange);

  const first = Promise.withResolvers<void>();
  const waiters = createListWaiters();
  let hasSynced = false;
  let heardMs: number | undefined;
  let relistAtMs = Number.NEGATIVE_INFINITY;
  let failures = 0;
  let fruitless = 0;
  let interruption = new AbortController();
  const source = { client, resource, selection, reflected, clock, log };
  const onAnswer = () => {
    heardMs = clock.nowMs();
  };
  const list = createLister(source, onAnswer);

  async function sync(signal: AbortSignal): Promise<void> {
    await list(signal);
    relistAtMs = clock.nowMs() + jittered(relistEveryMs, random);
    hasSynced = true;
    first.resolve();
  }

  function watch(signal: AbortSignal): Promise<void> {
    const timeoutSeconds = Math.round(watchTimeoutSeconds * (1 + random() / 2));
    const onProgress = () => {
      onAnswer();
      failures = 0;
      fruitless = 0;
    };
    return watchOnce(source, onProgress, { signal, timeoutSeconds, inactivityMs });
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      interruption = new AbortController();
      const either = AbortSignal.any([signal, interruption.signal]);
      const listing = !waiters.isEmpty() || clock.nowMs() >= relistAtMs;
      try {
        // Only watches are interrupted here, because a list that is restarted for each relist might not complete.
        await (listing ? waiters.serve(() => sync(signal)) : watch(either));
      } catch (error) {
        if (either.aborted) continue;
        if (!listing) fruitless++;
        if (isExpired(error) || fruitless >= FRUITLESS_WATCHES) {
          relistAtMs = Number.NEGATIVE_INFINITY;
          fruitless = 0;
        }
        failures++;
        const pauseMs = backoffMs(backoff, failures, random);
        // The first failure is expected, for example when the server restarts or when a watch is closed.
        log[failures === 1 ? 'debug' : 'warn']({ err: error, failures, pauseMs }, 'cannot list or watch; retrying');
        await sleep(clock, pauseMs, either);
      }
    }
    waiters.end();
  }

  return {
    resource,
    store: reflected.store,
    subscribe: reflected.subscribe,
    run,
    hasSynced: () => hasSynced,
    synced: first.promise,
    lastHeardMs: () => heardMs,
    relist: () => {
      const listed = waiters.wait();
      interruption.abort();
      return listed;
    },
  };
}
