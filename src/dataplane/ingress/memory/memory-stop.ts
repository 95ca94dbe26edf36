import type { Logger } from '../../../telemetry/log.ts';
import type { IngressLimits } from '../limits.ts';
import { computeShares, type MasterMemory, type OverShare, type Shares, type StoredStream } from './memory-shares.ts';

/** Used by ingress to read the memory usage of Redis. */
export interface MemorySource {
  /** Returns the reply to `INFO memory` for each master, including the name of the master. */
  readonly readMasters: () => Promise<readonly { readonly name: string; readonly reply: unknown }[]>;
  /** Returns all streams that have stored events, including the name of their master. */
  readonly readStored: () => Promise<readonly (StoredStream & { readonly master: string })[]>;
  /** Returns the name of the master on which the events of a stream are stored. */
  readonly masterOf: (tenant: string, queue: string) => string;
}

/**
 * The reason why an event is refused. Either the master is almost full, or the account stores too much of its memory.
 */
export type MemoryRefusal = 'full' | OverShare;

/**
 * MemoryStop decides whether new events must wait because a Redis master is almost full. We need to keep some memory
 * free for routing: without it, no queue can drain (rule 8 of the data plane). If an account stores more than its
 * share, it has to wait earlier. This ensures that it can't take this memory from other accounts.
 */
export interface MemoryStop {
  /** Returns true if there was a master that should not accept new events when it was last checked. */
  readonly isFull: () => boolean;
  /** Returns the reason why the master of this stream should not accept the event, as determined by the last check. */
  readonly refusalOf: (stream: StoredStream) => MemoryRefusal | undefined;
  /**
   * Checks the memory immediately, and then after each interval. This resolves after the first check, and it never
   * rejects.
   */
  readonly start: () => Promise<void>;
  readonly stop: () => void;
}

/** Calls `run` every `everyMs`. The first call is after `everyMs`. Use the returned function to stop. */
export type Repeat = (run: () => void, everyMs: number) => () => void;

/** Stored bytes that could not be read again for this long are not used any more. */
const STORED_KEPT_MS = 30_000;

const repeatInTime: Repeat = (run, everyMs) => {
  const timer = setInterval(run, everyMs).unref();
  return () => clearInterval(timer);
};

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
 * Creates the check for the memory. The current state is kept when a check fails, since every ingest call detects
 * whether Redis is available anyway.
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
  const { source, limits, log, onFailure, monotonicMs, repeat = repeatInTime } = options;
  let full: ReadonlySet<string> = new Set();
  let shares: ReadonlyMap<string, Shares> = new Map();
  let stored: { readonly streams: StoredStreams; readonly readMs: number } | undefined;
  let looking = false;
  const failing = new Set<string>();
  let end = () => {};

  /** Runs a single part of a check. For each outage, the failure is only reported once. */
  async function attempt(what: string, run: () => Promise<void>): Promise<void> {
    try {
      await run();
      failing.delete(what);
    } catch (error) {
      if (!failing.has(what)) onFailure(what, error);
      failing.add(what);
    }
  }

  async function look(): Promise<void> {
    // Skip this check if the previous one is still running.
    if (looking) return;
    looking = true;
    await attempt('memory', async () => {
      const replies = await source.readMasters();
      if (replies.length === 0) throw new Error('no master was asked for its memory');
      const masters = new Map(replies.map(({ name, reply }) => [name, parseMemory(reply)]));
      judge(masters);
      await divide(masters);
    });
    looking = false;
  }

  function judge(masters: ReadonlyMap<string, MasterMemory>): void {
    // Two separate limits, so ingress doesn't switch back and forth with each trimmed event.
    const limitOf = (name: string) => (full.has(name) ? limits.memoryGoOnRatio : limits.memoryStopRatio);
    const next = new Set(
      [...masters].filter(([name, memory]) => ratioOf(memory) >= limitOf(name)).map(([name]) => name),
    );
    for (const [master, memory] of masters) {
      const usedRatio = ratioOf(memory);
      if (next.has(master) === full.has(master)) continue;
      if (next.has(master)) log.warn({ master, usedRatio }, 'Redis is nearly full: no new events are accepted');
      else log.info({ master, usedRatio }, 'Redis has room again: new events are accepted');
    }
    full = next;
  }

  /** Computes the shares for all masters which are under pressure. If there are none, the stored bytes are not read. */
  async function divide(masters: ReadonlyMap<string, MasterMemory>): Promise<void> {
    const pressed = [...masters].filter(([, memory]) => ratioOf(memory) >= limits.memoryPressureRatio);
    if (pressed.length > 0) {
      await attempt('stored', async () => {
        stored = { streams: await source.readStored(), readMs: monotonicMs() };
      });
    }
    const streams =
      stored !== undefined && monotonicMs() - stored.readMs <= STORED_KEPT_MS ? stored.streams : undefined;
    const next = new Map<string, Shares>();
    for (const [name, memory] of streams === undefined ? [] : pressed) {
      const own = streams?.filter(({ master }) => master === name) ?? [];
      next.set(name, computeShares(own, memory, limits));
    }
    shares = next;
  }

  return {
    isFull: () => full.size > 0,
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
