import { compileExtraction, type ExtractionRules } from '../../core/events/context-headers.ts';
import { withDeadline } from '../../time/deadline.ts';
import { createExpiringMap } from '../../time/expiring-map.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import type { IngressLimits } from './limits.ts';
import type { IngressStore, QueueConfig } from './store.ts';

/** A queue's configuration with its extraction prepared. */
export interface KnownQueue {
  readonly config: QueueConfig;
  readonly rules: ExtractionRules;
}

/** Configurations of queues. */
export interface QueueCache {
  /** What was read at most `queueTtlMs` ago; undefined: read. */
  readonly peek: (tenant: string, queue: string) => KnownQueue | undefined;
  /** Reads now; the answer is not older than the call. */
  readonly read: (tenant: string, queue: string) => Promise<KnownQueue | null | 'unavailable'>;
}

/**
 * Nothing is ever decided against a sender by what is remembered: an event that is stored was checked against `cfgv`
 * in the store (STALE otherwise), and every refusal is decided again on a fresh read. So the age could be any; a
 * second keeps what a queue costs at one read a second and drops queues that are not used.
 * That a queue does not exist is not remembered: it may be made, and used, in the next millisecond.
 */
export function createQueueCache(options: {
  readQueue: IngressStore['readQueue'];
  limits: IngressLimits;
  nowMs: () => number;
  onFailure: (operation: string, error: unknown) => void;
}): QueueCache {
  const { readQueue, limits, nowMs, onFailure } = options;
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
