import { compileExtraction, type ExtractionRules } from '../../core/events/context-headers.ts';
import { withDeadline } from '../../time/deadline.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import type { IngressLimits } from './limits.ts';
import type { IngressStore, QueueConfig } from './store.ts';

/** Queue configuration, with extraction already prepared. */
export interface KnownQueue {
  readonly config: QueueConfig;
  readonly rules: ExtractionRules;
}

/** QueueCache caches queue configurations. */
export interface QueueCache {
  /**
   * Returns the configuration, but only if it was read within the last `queueTtlMs`. If this returns undefined, you
   * need to read it from the store.
   */
  readonly peek: (tenant: string, queue: string) => KnownQueue | undefined;
  /** Uses the store to read the configuration. The result is never older than the call. */
  readonly read: (tenant: string, queue: string) => Promise<KnownQueue | null | 'unavailable'>;
}

/**
 * Creates the cache for the configurations of queues. An event is never refused because of a configuration that is
 * cached. The store compares `cfgv` for each event and returns STALE if it has changed, and the configuration is always
 * read again before an event is refused. The expiry is only used to limit the number of reads for each queue, and to
 * remove queues that are not being used. If a queue does not exist, this is not cached, because it could be created at
 * any time.
 */
export function createQueueCache(options: {
  readQueue: IngressStore['readQueue'];
  limits: IngressLimits;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
  onFailure: (operation: string, error: unknown) => void;
}): QueueCache {
  const { readQueue, limits, monotonicMs: nowMs, onFailure } = options;
  const known = createExpiringMap<KnownQueue>({ ttlMs: limits.queueTtlMs, entries: limits.cacheEntries, nowMs });
  const readFresh = createSingleFlight<KnownQueue | null | 'unavailable'>();

  async function readAndKeep(tenant: string, queue: string): Promise<KnownQueue | null | 'unavailable'> {
    const config = await withDeadline(limits.ingestTimeoutMs, () => readQueue(tenant, queue));
    const key = `${tenant}/${queue}`;
    if (config === null || config === 'unavailable') {
      known.delete(key);
      return config;
    }
    const found = { config, rules: compileExtraction(config.contextHeaders, config.eventTypes) };
    known.set(key, found);
    return found;
  }

  return {
    peek: (tenant, queue) => known.get(`${tenant}/${queue}`),
    async read(tenant, queue) {
      try {
        return await readFresh(`${tenant}/${queue}`, () => readAndKeep(tenant, queue));
      } catch (error) {
        onFailure('readQueue', error);
        return 'unavailable';
      }
    },
  };
}
