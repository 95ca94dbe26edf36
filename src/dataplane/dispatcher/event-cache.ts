import { type EventMeta, parseEventMeta } from '../../core/events/event-meta.ts';
import { streamIdOfRef } from '../../core/ids/refs.ts';
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

/** Reads events. Items are undefined for events that were removed by retention. */
export type ReadEvents = (source: EventSource, refs: readonly string[]) => Promise<(CachedEvent | undefined)[]>;

const NOTHING = Promise.resolve();

interface Cached {
  /** Resolves once `event` has been read. The promise is shared between events that are read together. */
  read: Promise<void>;
  /** Undefined if the event has not been read yet or does not exist. */
  event: CachedEvent | undefined;
  /** Size of the event, or 0 until it has been read. */
  bytes: number;
  /** Whether the entry was removed from the cache. */
  dropped: boolean;
}

/**
 * Creates a cache for reading queue events. A single read is shared between subscriptions delivering the same event at
 * about the same time, so callers wait for the answer if a read is already under way. No more than `maxBytes` of events
 * are kept.
 */
export function createEventCache(inboxes: Pick<InboxStore, 'readEvents'>, maxBytes: number): ReadEvents {
  const cached = new Map<string, Cached>();
  let bytes = 0;

  function forget(key: string, entry: Cached): void {
    if (cached.get(key) === entry) drop(key, entry);
  }

  function drop(key: string, entry: Cached): void {
    bytes -= entry.bytes;
    entry.dropped = true;
    cached.delete(key);
  }

  function evict(): void {
    for (const [key, entry] of cached) {
      if (bytes <= maxBytes) return;
      drop(key, entry);
    }
  }

  async function read({ tenant, queue, gen }: EventSource, prefix: string, refs: readonly string[], made: Cached[]) {
    try {
      const stored = await inboxes.readEvents(tenant, queue, gen, refs.map(streamIdOfRef));
      for (const [i, entry] of made.entries()) {
        const ref = refs[i] as string;
        const found = stored[i];
        if (found === undefined) {
          forget(prefix + ref, entry);
          continue;
        }
        entry.event = { meta: parseEventMeta(found.meta, found.groupKey, ref), body: found.body };
        if (entry.dropped) continue;
        entry.bytes = found.body.length + found.meta.length + 200;
        bytes += entry.bytes;
      }
    } catch (error) {
      for (const [i, entry] of made.entries()) forget(prefix + refs[i], entry);
      throw error;
    }
    evict();
  }

  return async (source, refs) => {
    const prefix = `${source.tenant}:${source.queue}:${source.gen}:`;
    const entries: Cached[] = [];
    const missing: string[] = [];
    const made: Cached[] = [];
    for (const ref of refs) {
      let entry = cached.get(prefix + ref);
      if (entry === undefined) {
        entry = { read: NOTHING, event: undefined, bytes: 0, dropped: false };
        cached.set(prefix + ref, entry);
        missing.push(ref);
        made.push(entry);
      }
      entries.push(entry);
    }
    if (made.length > 0) {
      const reading = read(source, prefix, missing, made);
      for (const entry of made) entry.read = reading;
    }
    await Promise.all(new Set(entries.map(entry => entry.read)));
    return entries.map(entry => entry.event);
  };
}
