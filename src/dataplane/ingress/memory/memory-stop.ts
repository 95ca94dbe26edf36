import type { Logger } from '../../../telemetry/log.ts';
import { every, type Repeat } from '../../../time/clock.ts';
import type { IngressLimits } from '../limits.ts';
import { computeShares, type MasterMemory, type OverShare, type Shares, type StoredStream } from './memory-shares.ts';

interface Master {
  readonly name: string;
  /** Returns the reply to `INFO memory`. */
  readonly readMemory: () => Promise<unknown>;
}

/** Used by ingress to read the memory usage of Redis. */
export interface MemorySource {
  /** Returns all masters, or none if Redis is unavailable. */
  readonly masters: () => readonly Master[];
  /** Returns all streams that have stored events, including the name of their master. */
  readonly readStored: () => Promise<readonly (StoredStream & { readonly master: string })[]>;
  /** Returns the name of the master on which a stream's events are stored. */
  readonly masterOf: (tenant: string, queue: string) => string;
}

/**
 * The reason why an event is refused. Either the master is almost full, or the account stores too much of its memory.
 */
export type MemoryRefusal = 'full' | OverShare;

/**
 * MemoryStop decides whether new events must wait because a Redis master is almost full. We need to keep some memory
 * free for routing: without it, no queue can drain (rule 8 of the data plane). If an account stores more than its
 * share, it has to wait earlier, which ensures that it can't take this memory from other accounts.
 */
export interface MemoryStop {
  /** Returns true if there was a master that should not accept new events when it was last checked. */
  readonly isFull: () => boolean;
  /** Returns true if there are accounts that could be refused because of their share. */
  readonly isPressed: () => boolean;
  /** Returns the reason why the master of this stream should not accept the event, as determined by the last check. */
  readonly refusalOf: (stream: StoredStream) => MemoryRefusal | undefined;
  /**
   * Checks the memory immediately, and then after each interval. This resolves when all masters have been checked, or
   * have failed to reply. The promise never rejects.
   */
  readonly start: () => Promise<void>;
  readonly stop: () => void;
}

/**
 * The time after which stored bytes that could not be read again are no longer used. All of them are read from a single
 * master. Without shares, a large account would fill the others while it is silent. On the other hand, an account that
 * has emptied its streams since then may be refused because of its old size.
 */
const STORED_KEPT_MS = 3_600_000;

/**
 * Returns the memory usage from the reply to INFO.
 *
 * @throws Error if the values are missing from the reply
 */
function parseMemory(info: unknown): MasterMemory {
  const field = (name: string) => new RegExp(`^${name}:(\\d+)\\r?$`, 'm').exec(String(info))?.[1];
  const [used, max] = [field('used_memory'), field('maxmemory')];
  if (used === undefined || max === undefined) throw new Error('INFO memory says neither used_memory nor maxmemory');
  return { usedBytes: Number(used), maxBytes: Number(max) };
}

const ratioOf = ({ usedBytes, maxBytes }: MasterMemory) => (maxBytes === 0 ? 0 : usedBytes / maxBytes);

type StoredStreams = Awaited<ReturnType<MemorySource['readStored']>>;

/**
 * Creates the check for the memory. Each master is checked on its own, so that one that doesn't reply does not delay
 * the others. The last state of such a master is kept because every ingest call detects whether Redis is available
 * anyway.
 */
export function createMemoryStop(options: {
  readonly source: MemorySource;
  readonly limits: Pick<
    IngressLimits,
    'memoryLookMs' | 'memoryPressureRatio' | 'memoryStopRatio' | 'memoryGoOnRatio' | 'guaranteedBytes'
  >;
  readonly log: Logger;
  readonly onFailure: (operation: string, error: unknown) => void;
  /** Monotonic clock in milliseconds. */
  readonly monotonicMs: () => number;
  readonly repeat?: Repeat;
}): MemoryStop {
  const { source, limits, log, onFailure, monotonicMs, repeat = every } = options;
  const memories = new Map<string, MasterMemory>();
  const full = new Set<string>();
  const shares = new Map<string, Shares>();
  let stored: { readonly streams: StoredStreams; readonly readMs: number } | undefined;
  const running = new Set<string>();
  const failing = new Set<string>();
  let end = () => {};

  /**
   * Runs a single part of a check, unless it is still running since an earlier one. For each outage, the failure is
   * only reported once.
   */
  async function attempt(operation: string, name: string, run: () => Promise<void>): Promise<void> {
    const what = `${operation} ${name}`;
    if (running.has(what)) return;
    running.add(what);
    try {
      await run();
      failing.delete(what);
    } catch (error) {
      if (!failing.has(what)) onFailure(operation, error);
      failing.add(what);
    }
    running.delete(what);
  }

  async function look(): Promise<void> {
    const masters = source.masters();
    await attempt('masters', '', async () => {
      if (masters.length === 0) throw new Error('no master was asked for its memory');
      forgetOthers(new Set(masters.map(({ name }) => name)));
    });
    let reading: Promise<void> | undefined;
    const readOnce = () => (reading ??= readStreams());
    await Promise.all(masters.map(master => lookAt(master, readOnce)));
  }

  /** Forgets all masters that are not listed any more, for example after a failover. */
  function forgetOthers(listed: ReadonlySet<string>): void {
    for (const name of memories.keys()) {
      if (listed.has(name)) continue;
      memories.delete(name);
      full.delete(name);
      shares.delete(name);
      failing.delete(`memory ${name}`);
    }
  }

  async function lookAt({ name, readMemory }: Master, readOnce: () => Promise<void>): Promise<void> {
    let isRead = false;
    await attempt('memory', name, async () => {
      const memory = parseMemory(await readMemory());
      memories.set(name, memory);
      judge(name, ratioOf(memory));
      isRead = true;
    });
    if (isRead) await divide(name, readOnce);
  }

  function judge(master: string, usedRatio: number): void {
    // Two separate limits, so ingress doesn't switch back and forth with each trimmed event.
    const wasFull = full.has(master);
    const isFull = usedRatio >= (wasFull ? limits.memoryGoOnRatio : limits.memoryStopRatio);
    if (isFull === wasFull) return;
    if (isFull) {
      full.add(master);
      log.warn({ master, usedRatio }, 'Redis is nearly full: no new events are accepted');
    } else {
      full.delete(master);
      log.info({ master, usedRatio }, 'Redis has room again: new events are accepted');
    }
  }

  /** Computes the shares for a master if it is under pressure. For any other master, the stored bytes are not read. */
  async function divide(name: string, readOnce: () => Promise<void>): Promise<void> {
    const pressedMemory = () => {
      const memory = memories.get(name);
      return memory !== undefined && ratioOf(memory) >= limits.memoryPressureRatio ? memory : undefined;
    };
    if (pressedMemory() !== undefined) await readOnce();
    // A later check may have read the memory again in the meantime.
    const memory = pressedMemory();
    if (memory === undefined || stored === undefined || monotonicMs() - stored.readMs > STORED_KEPT_MS) {
      shares.delete(name);
      return;
    }
    const own = stored.streams.filter(({ master }) => master === name);
    shares.set(name, computeShares(own, memory, limits));
  }

  function readStreams(): Promise<void> {
    return attempt('stored', '', async () => {
      stored = { streams: await source.readStored(), readMs: monotonicMs() };
    });
  }

  return {
    isFull: () => full.size > 0,
    isPressed: () => shares.size > 0,
    refusalOf(stream) {
      if (full.size === 0 && shares.size === 0) return undefined;
      const master = source.masterOf(stream.tenant, stream.queue);
      return full.has(master) ? 'full' : shares.get(master)?.findExcess(stream);
    },
    start() {
      end = repeat(() => void look(), limits.memoryLookMs);
      return look();
    },
    stop: () => end(),
  };
}
