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
  /** Mirrors until the signal aborts, with retries. Call it once. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Returns whether the first list is complete. */
  readonly hasSynced: () => boolean;
  /** Resolves when the first list is complete. */
  readonly synced: Promise<void>;
  /** Time of the last event, bookmark or list from the API server, as the clock's `nowMs`; undefined: none yet. */
  readonly lastHeardMs: () => number | undefined;
  /** Lists again. Resolves when a list that began after this call is applied. Rejects when `run` has ended. */
  readonly relist: () => Promise<void>;
};

type ReflectorOptions<T extends AnyObject, P> = Selection & {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  /** Returns what to keep of an object; undefined drops it. Must be pure and small: 100,000 results stay in memory. */
  readonly project: (object: T) => P | undefined;
  readonly indexers?: Indexers<P>;
  readonly onChange?: ChangeHandler<P>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
  /** Pauses between retries. Default 200 ms to 10 s. */
  readonly backoff?: Backoff;
  /** Duration of a watch. Default 240; each gets up to 50 % more, so that replicas do not reconnect together. */
  readonly watchTimeoutSeconds?: number;
  /** Time without a byte after which a watch counts as dead. Default 90,000: a bookmark comes once a minute. */
  readonly inactivityMs?: number;
  /** Time between relists, as a safety net against lost events. Default one hour, with jitter. */
  readonly relistEveryMs?: number;
};

/** Number of watches in a row without any event, after which everything is listed again. */
const FRUITLESS_WATCHES = 4;

/** Quorum lists older than known data that are refused (a stale server). One more is accepted (a restored etcd). */
const OLDER_LISTS = 3;

/** A watch that ends sooner than this without an event counts as a failure, ms. */
const SHORTEST_WATCH_MS = 1_000;

const BACKOFF: Backoff = { firstMs: 200, mostMs: 10_000 };

/** What a reflector reads, and where it puts it. */
type Source<P> = {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  readonly selection: Selection;
  readonly reflected: Reflected<P>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Creates the function that replaces the state by a new list. It rejects if the API server is behind the state. */
function createLister<P>({ client, resource, selection, reflected, log }: Source<P>, onAnswer: () => void) {
  let olderLists = 0;
  return async (signal: AbortSignal): Promise<void> => {
    // A list that may be accepted although it is older must not reuse known objects: see `projectAnew`.
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

/** Applies the events of one watch, until the server ends it. Rejects if it ends at once. */
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
  // The server ended the watch regularly.
  onProgress();
}

/** Creates the waiters for a list. A list serves those that came before it began. If it fails, they wait on. */
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
 * Creates a local cache of one kind: lists, then watches. Combines client-go's Reflector and the store of its shared
 * informer. Projects objects before it stores them.
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
        // Interrupt only watches: a list that restarts for each caller of relist might never end.
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
        // The first failure is usual: a server that restarts, or a watch that ends.
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
