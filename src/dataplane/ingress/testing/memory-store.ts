import { hash, randomFillSync } from 'node:crypto';
import { CONTEXT_HEADER_DEFAULTS } from '../../../api/context-headers.ts';
import type { MemorySource } from '../memory/memory-stop.ts';
import { createEventIds, createRandom40 } from '../sandbox/event-id.ts';
import type { IngestAnswer, IngestItem, IngressStore, QueueConfig } from '../store.ts';

/**
 * MemoryStore is an in-memory implementation of the store rules for a single workspace. All of its state can be
 * accessed by tests.
 */
export interface MemoryStore extends IngressStore {
  readonly tenant: string;
  readonly key: string;
  /** All valid keys. The first one is `key`. */
  readonly keys: Set<string>;
  /** The number of keys that have been looked up so far. */
  lookups: number;
  readonly queues: Map<string, QueueConfig>;
  readonly stored: IngestItem[];
  /** The number of events in each of the calls so far. */
  readonly calls: number[];
  /** If set, lookups of keys wait for it. */
  holdLookups: Promise<void> | undefined;
  /** If set, ingest waits for it. */
  hold: Promise<void> | undefined;
  /** If set, ingest will answer with this value or throw it. */
  answer: IngestAnswer['answer'] | Extract<IngestAnswer, { answer: 'LIMIT' }> | Error | undefined;
  lost: boolean;
  /** Reports a Redis master which does not have a memory limit. */
  readonly memorySource: MemorySource;
}

export const QUEUE: QueueConfig = {
  gen: 'g1',
  cfgv: '1',
  state: 'open',
  eventTypes: [],
  contextHeaders: CONTEXT_HEADER_DEFAULTS,
  maxBytes: 1_000_000,
  source: '/orders',
  payer: '',
  bytes: 0,
};

export function createMemoryStore(): MemoryStore {
  const key = 'sk_0123456789abcdef';
  const known = new Set<string>();
  const nextEventId = createEventIds(Date.now, createRandom40(randomFillSync));
  const store: MemoryStore = {
    tenant: `ten_${'0123456789'.repeat(2)}`,
    key,
    keys: new Set([key]),
    lookups: 0,
    queues: new Map([['orders', QUEUE]]),
    stored: [],
    calls: [],
    memorySource: {
      masters: () => [{ name: '', readMemory: async () => 'used_memory:1\r\nmaxmemory:0\r\n' }],
      readStored: async () => [],
      masterOf: () => '',
    },
    holdLookups: undefined,
    hold: undefined,
    answer: undefined,
    lost: false,
    readQueue: async (tenant, queue) => {
      if (store.lost) return 'unavailable';
      return tenant === store.tenant ? (store.queues.get(queue) ?? null) : null;
    },
    async checkKey(tenant, sha256) {
      store.lookups += 1;
      await store.holdLookups;
      if (store.lost) return 'unavailable';
      const isKnown = tenant === store.tenant && [...store.keys].some(each => hash('sha256', each) === sha256);
      return isKnown ? Infinity : 0;
    },
    ingest: async (_tenant, queue, config, items) => {
      store.calls.push(items.length);
      await store.hold;
      const { answer } = store;
      if (answer instanceof Error) throw answer;
      if (typeof answer === 'object') return { answers: items.map(() => answer) };
      const now = store.queues.get(queue);
      const answers = items.map((item): IngestAnswer => {
        if (answer !== undefined && answer !== 'OK' && answer !== 'DUP') return { answer };
        if (now === undefined) return { answer: 'GONE' };
        if (now.cfgv !== config.cfgv || now.gen !== config.gen) return { answer: 'STALE' };
        if (now.state === 'closing') return { answer: 'CLOSED' };
        const { id = nextEventId() } = item;
        if (known.has(id)) return { answer: 'DUP', ref: id, id };
        known.add(id);
        store.stored.push(item);
        return { answer: 'OK', ref: id, id };
      });
      if (now === undefined || now.cfgv !== config.cfgv) return { answers };
      const { payer, eventsPerSecond, bytes } = now;
      return { answers, queueNow: { payer, eventsPerSecond, bytes } };
    },
  };
  return store;
}
