import type { Logger } from '../telemetry/log.ts';
import { type Backoff, backoffMs } from '../time/backoff.ts';
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
  /** Mirrors until the signal aborts, through every failure. Call once. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Whether one whole list has arrived; never false again after that. */
  readonly hasSynced: () => boolean;
  /** Resolves with the first whole list. */
  readonly synced: Promise<void>;
  /** When the API server was last heard (an event, a bookmark, a list), as the clock's `nowMs`; undefined: never. */
  readonly lastHeardMs: () => number | undefined;
  /** Lists anew; resolves when a list that began after this call has been applied. Rejects when `run` has ended. */
  readonly relist: () => Promise<void>;
};

export type ReflectorOptions<T extends AnyObject, P> = Selection & {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly resource: Resource;
  /** What is kept of an object; undefined keeps nothing of it. Must be pure and slim: 100,000 of them stay in memory. */
  readonly project: (object: T) => P | undefined;
  readonly indexers?: Indexers<P>;
  readonly onChange?: ChangeHandler<P>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
  /** Default 200 ms to 10 s. */
  readonly backoff?: Backoff;
  /** Default 240; each watch gets up to half as much again, so that replicas do not reconnect together. */
  readonly watchTimeoutSeconds?: number;
  /** Default 90,000: the API server sends a bookmark once a minute. */
  readonly inactivityMs?: number;
  /** The safety net against an event lost on the way: how long until a list anew. Default one hour, jittered. */
  readonly relistEveryMs?: number;
};

/** Watches in a row that brought nothing, after which the cursor itself is doubted and everything listed anew. */
const FRUITLESS_WATCHES = 4;

/** A quorum list older than what was seen: a stale server behind a load balancer, or, if it stays, a restored etcd. */
const OLDER_LISTS = 3;

/** A watch that the server ended sooner than this, without an event, counts as a failure. */
const SHORTEST_WATCH_MS = 1_000;

/**
 * A local mirror of one kind: list, then watch, for as long as it takes. client-go's Reflector and the store of its
 * shared informer in one; objects are projected on the way in.
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
      // A list that may be accepted though it is older shares nothing with what is known: see `projectAnew`.
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
      relistAtMs = clock.nowMs() + relistEveryMs * (0.75 + random() / 2);
      reflected.replace(answer.items, answer.resourceVersion, { anew });
    } catch (error) {
      waiters.push(...served);
      throw error;
    }
    hasSynced = true;
    first.resolve();
    for (const { resolve } of served) resolve();
  }

  /** Whether the watch brought anything. An expired cursor is no failure: the list that follows mends it. */
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
    // The server is there: it ended the watch in order.
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
        // An interrupted list would be begun anew for each caller of relist, and never end: only watches are.
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
        // The first is usual: a server that restarts, a watch at its end.
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
