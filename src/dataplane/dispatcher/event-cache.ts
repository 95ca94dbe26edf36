import { type EventMeta, parseEventMeta } from '../../core/event-meta.ts';
import { streamIdOfRef } from '../../core/refs.ts';
import type { InboxStore } from '../../redis/inbox-store.ts';

export interface CachedEvent {
  readonly meta: EventMeta;
  readonly body: Buffer;
}

export interface EventSource {
  readonly tenant: string;
  readonly queue: string;
  readonly gen: string;
}

/** Reads events; undefined for one that retention removed. */
export type ReadEvents = (source: EventSource, refs: readonly string[]) => Promise<(CachedEvent | undefined)[]>;

interface Cached {
  event: Promise<CachedEvent | undefined>;
  /** 0 while it is being read. */
  bytes: number;
}

/**
 * Reads events of a queue, each once for all subscriptions that deliver it at about the same time: a promise is kept
 * for every ref that is being read, and what was read as long as it fits into `maxBytes`.
 */
export function createEventCache(inboxes: Pick<InboxStore, 'readEvents'>, maxBytes: number): ReadEvents {
  const cached = new Map<string, Cached>();
  let bytes = 0;

  function forget(key: string, entry: Cached): void {
    if (cached.get(key) !== entry) return;
    bytes -= entry.bytes;
    cached.delete(key);
  }

  function evict(): void {
    for (const [key, entry] of cached) {
      if (bytes <= maxBytes) return;
      bytes -= entry.bytes;
      cached.delete(key);
    }
  }

  return async (source, refs) => {
    const prefix = `${source.tenant}:${source.queue}:${source.gen}:`;
    const missing = refs.filter(ref => !cached.has(prefix + ref));
    if (missing.length > 0) {
      const read = inboxes.readEvents(source.tenant, source.queue, source.gen, missing.map(streamIdOfRef));
      for (const [i, ref] of missing.entries()) {
        const key = prefix + ref;
        const entry: Cached = { event: Promise.resolve(undefined), bytes: 0 };
        entry.event = read.then(events => {
          const stored = events[i];
          if (stored === undefined) {
            forget(key, entry);
            return undefined;
          }
          if (cached.get(key) === entry) {
            entry.bytes = stored.body.length + stored.meta.length + 200;
            bytes += entry.bytes;
          }
          return { meta: parseEventMeta(stored.meta, stored.groupKey, ref), body: stored.body };
        });
        entry.event.catch(() => forget(key, entry));
        cached.set(key, entry);
      }
      read.then(evict, () => {});
    }
    return Promise.all(refs.map(ref => (cached.get(prefix + ref) as Cached).event));
  };
}
