import { createLimitedLog } from '../telemetry/limited-log.ts';
import type { Logger } from '../telemetry/log.ts';
import { type Backoff, backoffMs, jittered } from '../time/backoff.ts';
import { type Clock, sleep } from '../time/clock.ts';
import { inSlices } from '../time/slices.ts';
import type { KubeClient, Selection } from './client.ts';
import { isExpired, isKubeError, NO_ANSWER } from './kube-error.ts';
import type { AnyObject } from './object.ts';
import { type ChangeHandler, createReflected, type Reflected } from './reflected.ts';
import { collectionPath, type Resource } from './resource.ts';
import { isOlder } from './resource-version.ts';
import type { Indexers } from './store.ts';

export type Reflector<P> = Pick<Reflected<P>, 'store' | 'subscribe'> & {
  readonly resource: Resource;
  /** Keeps the cache up to date until the signal is aborted. Errors are retried. Must only be called once. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Returns true if the first list has been completed. */
  readonly hasSynced: () => boolean;
  /** Resolves when the first list has been completed. */
  readonly synced: Promise<void>;
  /**
   * The time at which the last event, bookmark, or list was received from the API server. You can compare it to `nowMs`
   * of the clock. Undefined until there has been a response.
   */
  readonly lastHeardMs: () => number | undefined;
  /**
   * Lists all objects again. Resolves when a list that was started after this call has been applied. Rejects if `run`
   * has ended.
   */
  readonly relist: () => Promise<void>;
};

type ReflectorOptions<T extends AnyObject, P> = Selection & {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  /**
   * Returns the value that should be cached. Returns undefined if the object is not required. Must be a pure function.
   * As there may be 100,000 values in memory, they should be small.
   */
  readonly project: (object: T) => P | undefined;
  readonly indexers?: Indexers<P>;
  readonly onChange?: ChangeHandler<P>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
  /**
   * The backoff to use between two retries. By default, this starts at 200 milliseconds and increases up to 10 seconds.
   */
  readonly backoff?: Backoff;
  /**
   * The duration of each watch. Defaults to 240 seconds. Up to 50% of jitter is added to prevent all replicas from
   * reconnecting at once.
   */
  readonly watchTimeoutSeconds?: number;
  /**
   * If no data is received for this time, the watch is considered dead. The default is 90,000 because the server will
   * send a bookmark about once per minute.
   */
  readonly inactivityMs?: number;
  /**
   * The interval between relists, which keep lost events from having a lasting effect. The default is one hour, with
   * additional jitter.
   */
  readonly relistEveryMs?: number;
};

/** The number of consecutive watches without any events before listing all objects again. */
const FRUITLESS_WATCHES = 4;

/**
 * The number of lists to reject because they are older than the known data. An outdated server may have returned such
 * lists. After that, the next list is accepted because etcd may have been restored from a backup.
 */
const OLDER_LISTS = 3;

/** If a watch ends before this time without any events, we consider this to be a failure. In milliseconds. */
const SHORTEST_WATCH_MS = 1_000;

const BACKOFF: Backoff = { firstMs: 200, mostMs: 10_000 };

/** There is a cache for each kind, and all of them fail while the API server or the permissions are missing. */
const FAILURE_LINES = { lines: 1, periodMs: 60_000 };

/** The API resource a reflector reads, and the state it updates. */
type Source<P> = {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  readonly selection: Selection;
  readonly reflected: Reflected<P>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Creates a function that lists all objects and replaces the state. Rejects if the list is older than the state. */
function createLister<P>({ client, resource, selection, reflected, log }: Source<P>, onAnswer: () => void) {
  let olderLists = 0;
  return async (signal: AbortSignal): Promise<void> => {
    // When accepting a list despite its age, we must not reuse known objects. See `projectAnew` for the reason.
    const project = olderLists < OLDER_LISTS ? reflected.project : reflected.projectAnew;
    const { items, resourceVersion } = await client.list(resource, project, { ...selection, signal, streamed: true });
    onAnswer();
    const cursor = reflected.cursor();
    const anew = cursor !== undefined && isOlder(resourceVersion, cursor);
    if (anew && ++olderLists <= OLDER_LISTS) throw new Error('the API server returned an older state than before');
    if (anew) log.warn({ resourceVersion }, 'accepting an older list: the API server went back in time');
    olderLists = 0;
    await inSlices(reflected.replace(items, resourceVersion, { anew }));
  };
}

/** Applies watch events until the server closes the watch and rejects if this happens too early. */
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
  if (events === 0 && clock.nowMs() - beganMs < SHORTEST_WATCH_MS) throw new Error('the watch ended immediately');
  // The end of a watch is not a failure, because the server closes the watch after its timeout.
  onProgress();
}

/**
 * Tracks callers waiting for a list. A successful list resolves all callers which were already waiting when it was
 * started. After a failed list, they continue to wait.
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

/** Creates a function that logs a failed list or watch. */
function createFailureLog(log: Logger, { nowMs }: Clock) {
  const limited = createLimitedLog({ ...FAILURE_LINES, nowMs });
  return (error: unknown, failures: number, pauseMs: number): void => {
    // The message of a response is complete. Other errors have a cause.
    const isAnswer = isKubeError(error) && error.status !== NO_ANSWER;
    const cause = isAnswer ? { detail: error.message } : { err: error };
    const line = [{ ...cause, failures, pauseMs }, 'cannot list or watch; retrying'] as const;
    // A first failure is to be expected, e.g. when the server restarts or a watch is closed.
    if (failures === 1) log.debug(...line);
    else limited(log, 'warn', ...line);
  };
}

/**
 * Creates a cache for a single kind. A list fills the cache. A watch then keeps it up to date. Similar to the Reflector
 * in client-go together with the store of its shared informer, but objects are projected before they are stored.
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
  const logFailure = createFailureLog(log, clock);

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
        // Only interrupt watches. If we restarted a list each time, it might never be completed.
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
        logFailure(error, failures, pauseMs);
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
