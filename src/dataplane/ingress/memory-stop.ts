import type { Logger } from '../../telemetry/log.ts';
import type { IngressLimits } from './limits.ts';

/**
 * MemoryStop decides whether new events must wait because Redis is almost full. We need to keep some memory free for
 * routing: without it, no queue can drain (rule 8 of the data plane).
 */
export interface MemoryStop {
  /** Returns true if, according to the last check, new events should not be accepted. */
  readonly isFull: () => boolean;
  /** Checks the memory now, and then at each interval. Resolves after the first check and never rejects. */
  readonly start: () => Promise<void>;
  readonly stop: () => void;
}

/** Sends a command to each Redis master and returns their replies. */
export type AskMasters = (command: string, ...args: string[]) => Promise<readonly unknown[]>;

/** Calls `run` every `everyMs`, starting after `everyMs`. Use the returned function to stop. */
export type Repeat = (run: () => void, everyMs: number) => () => void;

const repeatInTime: Repeat = (run, everyMs) => {
  const timer = setInterval(run, everyMs).unref();
  return () => clearInterval(timer);
};

/**
 * Returns the used fraction of maxmemory (0 to 1) from an INFO reply. Will be 0 if the master has no limit.
 *
 * @throws Error if these values are missing from the reply
 */
function readUsedRatio(info: unknown): number {
  const field = (name: string) => new RegExp(`^${name}:(\\d+)\\r?$`, 'm').exec(String(info))?.[1];
  const [used, max] = [field('used_memory'), field('maxmemory')];
  if (used === undefined || max === undefined) throw new Error('INFO memory says neither used_memory nor maxmemory');
  return max === '0' ? 0 : Number(used) / Number(max);
}

/**
 * Creates the memory check. The current state is kept when a check fails, since every ingest call detects whether Redis
 * is available anyway.
 */
export function createMemoryStop(options: {
  readonly askMasters: AskMasters;
  readonly limits: Pick<IngressLimits, 'memoryLookMs' | 'memoryStopRatio' | 'memoryGoOnRatio'>;
  readonly log: Logger;
  readonly onFailure: (operation: string, error: unknown) => void;
  readonly repeat?: Repeat;
}): MemoryStop {
  const { askMasters, limits, log, onFailure, repeat = repeatInTime } = options;
  let full = false;
  let looking = false;
  let failing = false;
  let end = () => {};

  async function look(): Promise<void> {
    // Skip this check if the previous one is still running.
    if (looking) return;
    looking = true;
    try {
      const ratios = (await askMasters('INFO', 'memory')).map(readUsedRatio);
      if (ratios.length === 0) throw new Error('no master was asked for its memory');
      judge(Math.max(...ratios));
      failing = false;
    } catch (error) {
      // Only report the failure once per outage.
      if (!failing) onFailure('memory', error);
      failing = true;
    } finally {
      looking = false;
    }
  }

  function judge(usedRatio: number): void {
    // Two separate limits, so ingress doesn't switch back and forth with each trimmed event.
    const next = usedRatio >= (full ? limits.memoryGoOnRatio : limits.memoryStopRatio);
    if (next === full) return;
    full = next;
    if (full) log.warn({ usedRatio }, 'redis is nearly full: no new events are taken');
    else log.info({ usedRatio }, 'redis has room again: events are taken');
  }

  return {
    isFull: () => full,
    start() {
      end = repeat(() => void look(), limits.memoryLookMs);
      return look();
    },
    stop: () => end(),
  };
}
