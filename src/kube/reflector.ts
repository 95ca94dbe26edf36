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

export type ReflectorOptions<T extends AnyObject, P> = Selection & {
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

/**
 * Creates a local cache of one kind: lists, then watches. Combines client-go's Reflector and the store of its shared
 * informer. Projects objects before it stores them.
 */
export function createReflector<T extends AnyObject, P>(options: ReflectorOptions<T, P>): Reflector<P> {
  const {
    client,
    resource,
    clock,
    namespace,
    labelSelector,
    fieldSelector,
    metadataOnly,
    random = Math.random,
  } = options;
  const { backoff = { firstMs: 200, mostMs: 10_000 }, watchTimeoutSeconds = 240, inactivityMs = 90_000 } = options;
  const { relistEveryMs = 3_600_000 } = options;
  const log = options.log.child({ resource: collectionPath(resource, namespace) });
  const project = (object: AnyObject) => options.project(object as T);
  const reflected = createReflected<P>({ project, indexers: options.indexers, log });
  if (options.onChange !== undefined) reflected.subscribe(options.onChange);
  const selection = { namespace, labelSelector, fieldSelector, metadataOnly };

  const first = Promise.withResolvers<void>();
  let hasSynced = false;
  let ended = false;
  let heardMs: number | undefined;
  let mustList = true;
  let relistAtMs = Number.POSITIVE_INFINITY;
  let olderLists = 0;
  let waiters: PromiseWithResolvers<void>[] = [];
  let interruption = new AbortController();

  async function list(signal: AbortSignal): Promise<void> {
    const served = waiters;
    waiters = [];
    try {
      // A list that may be accepted although it is older must not reuse known objects: see `projectAnew`.
      const project = olderLists < OLDER_LISTS ? reflected.project : reflected.projectAnew;
      const answer = await client.list(resource, project, { ...selection, signal });
      heardMs = clock.nowMs();
      const cursor = reflected.cursor();
      const anew = cursor !== undefined && isOlder(answer.resourceVersion, cursor);
      if (anew) {
        olderLists++;
        if (olderLists <= OLDER_LISTS) throw new Error('the API server is behind what was seen before');
        log.warn({ resourceVersion: answer.resourceVersion }, 'the API server went back in time');
      }
      olderLists = 0;
      mustList = false;
      relistAtMs = clock.nowMs() + jittered(relistEveryMs, random);
      reflected.replace(answer.items, answer.resourceVersion, { anew });
    } catch (error) {
      waiters.push(...served);
      throw error;
    }
    hasSynced = true;
    first.resolve();
    for (const { resolve } of served) resolve();
  }

  /** Watches once. Returns whether an event came. An expired cursor is not a failure: the next list fixes it. */
  async function watch(signal: AbortSignal, onProgress: () => void): Promise<void> {
    const beganMs = clock.nowMs();
    let events = 0;
    const timeoutSeconds = Math.round(watchTimeoutSeconds * (1 + random() / 2));
    const resourceVersion = reflected.cursor();
    for await (const event of client.watch<AnyObject>(resource, {
      ...selection,
      resourceVersion,
      signal,
      timeoutSeconds,
      inactivityMs,
    })) {
      heardMs = clock.nowMs();
      events++;
      onProgress();
      reflected.apply(event);
    }
    if (events === 0 && clock.nowMs() - beganMs < SHORTEST_WATCH_MS) throw new Error('the watch ended at once');
    // The server ended the watch regularly.
    heardMs = clock.nowMs();
    onProgress();
  }

  async function run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    let fruitless = 0;
    while (!signal.aborted) {
      interruption = new AbortController();
      const either = AbortSignal.any([signal, interruption.signal]);
      if (waiters.length > 0 || clock.nowMs() >= relistAtMs) mustList = true;
      const listing = mustList;
      try {
        // Interrupt only watches: a list that restarts for each caller of relist might never end.
        if (listing) await list(signal);
        else {
          await watch(either, () => {
            failures = 0;
            fruitless = 0;
          });
        }
      } catch (error) {
        if (either.aborted) continue;
        if (!listing) fruitless++;
        if (isExpired(error) || fruitless >= FRUITLESS_WATCHES) {
          mustList = true;
          fruitless = 0;
        }
        failures++;
        const pauseMs = backoffMs(backoff, failures, random);
        // The first failure is usual: a server that restarts, or a watch that ends.
        log[failures === 1 ? 'debug' : 'warn']({ err: error, failures, pauseMs }, 'mirroring is interrupted');
        await sleep(clock, pauseMs, either);
      }
    }
    ended = true;
    for (const { reject } of waiters) reject(new Error('the reflector has ended'));
    waiters = [];
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
      if (ended) return Promise.reject(new Error('the reflector has ended'));
      const waiter = Promise.withResolvers<void>();
      waiters.push(waiter);
      interruption.abort();
      return waiter.promise;
    },
  };
}
