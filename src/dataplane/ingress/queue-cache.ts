import { compileExtraction, type ExtractionRules } from '../../core/events/context-headers.ts';
import { createBoundedReads } from '../../time/bounded-reads.ts';
import { systemClock } from '../../time/clock.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import type { IngressLimits } from './limits.ts';
import type { IngressStore, QueueConfig, QueueNow } from './store.ts';

/** Queue configuration, with extraction already prepared. */
export interface KnownQueue {
  readonly config: QueueConfig;
  readonly rules: ExtractionRules;
  /** The time at which the limits and the stored bytes were read. */
  readonly readMs: number;
}

/** QueueCache caches queue configurations. */
export interface QueueCache {
  /**
   * Returns the configuration if it was used within the last `queueKeptMs`. If its limits are needed, they must have
   * been read within the last `queueTtlMs`. If this returns undefined, you need to read it from the store.
   */
  readonly peek: (tenant: string, queue: string) => KnownQueue | undefined;
  /** Notes what the store has returned for a call with this configuration. */
  readonly confirm: (tenant: string, queue: string, config: QueueConfig, now: QueueNow) => void;
  /** Uses the store to read the configuration. The result is never older than the call. */
  readonly read: (tenant: string, queue: string) => Promise<KnownQueue | null | 'unavailable'>;
}

/**
 * Creates the cache for the configurations of queues. An event is never refused because of a configuration that is
 * cached. The store compares `cfgv` for each event and returns STALE if it has changed. Before an event is refused, the
 * configuration is always read again. Values that `cfgv` does not include are returned by each call that stores events.
 * Before the first such call, they are only needed for an account with a limit of events or while memory is short. The
 * absence of a queue is not cached, because the queue could be created at any time.
 */
export function createQueueCache(options: {
  readQueue: IngressStore['readQueue'];
  limits: IngressLimits;
  /** Returns true if accounts are refused because of their stored bytes. */
  isPressed: () => boolean;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
  onFailure: (operation: string, error: unknown) => void;
}): QueueCache {
  const { readQueue, limits, isPressed, monotonicMs: nowMs, onFailure } = options;
  const { cacheEntries: entries, ingestTimeoutMs: timeoutMs } = limits;
  const known = createExpiringMap<KnownQueue>({ ttlMs: limits.queueKeptMs, entries, nowMs });
  const reads = createBoundedReads<KnownQueue | null | 'unavailable'>({
    timeoutMs,
    entries,
    clock: { ...systemClock, nowMs },
  });

  async function readAndKeep(tenant: string, queue: string, signal: AbortSignal) {
    const config = await readQueue(tenant, queue);
    signal.throwIfAborted();
    const key = `${tenant}/${queue}`;
    if (config === null || config === 'unavailable') {
      known.delete(key);
      return config;
    }
    const found = { config, rules: compileExtraction(config.contextHeaders, config.eventTypes), readMs: nowMs() };
    known.set(key, found);
    return found;
  }

  return {
    peek(tenant, queue) {
      const found = known.get(`${tenant}/${queue}`);
      if (found === undefined || nowMs() - found.readMs < limits.queueTtlMs) return found;
      return found.config.eventsPerSecond === undefined && !isPressed() ? found : undefined;
    },
    confirm(tenant, queue, { gen, cfgv }, now) {
      const key = `${tenant}/${queue}`;
      const found = known.get(key);
      if (found === undefined || found.config.gen !== gen || found.config.cfgv !== cfgv) return;
      known.set(key, { ...found, config: { ...found.config, ...now }, readMs: nowMs() });
    },
    async read(tenant, queue) {
      try {
        const key = `${tenant}/${queue}`;
        const found = await reads.read(key, key, signal => readAndKeep(tenant, queue, signal));
        return found === 'silent' ? 'unavailable' : found;
      } catch (error) {
        onFailure('readQueue', error);
        return 'unavailable';
      }
    },
  };
}
