import type { Logger } from '../../telemetry/log.ts';
import type { IngressLimits } from './limits.ts';

/**
 * Says when Redis is so full that new events have to wait. Routing needs memory, too: without the rest that is left free
 * here, nothing that is stored could be routed any more, and so nothing would drain (rule 8 of the data plane).
 */
export interface MemoryStop {
  /** Whether no new events are to be taken, by the last look. */
  readonly isFull: () => boolean;
  /** Looks, and goes on looking. Resolves after the first look; never rejects. */
  readonly start: () => Promise<void>;
  readonly stop: () => void;
}

/** A command to each master of Redis: what each of them answers. */
export type AskMasters = (command: string, ...args: string[]) => Promise<readonly unknown[]>;

/** Runs `run` every `everyMs`, the first time after it; the answer ends that. */
export type Repeat = (run: () => void, everyMs: number) => () => void;

const repeatInTime: Repeat = (run, everyMs) => {
  const timer = setInterval(run, everyMs).unref();
  return () => clearInterval(timer);
};

/** Used part of maxmemory (0 to 1), by what a master answers to INFO; 0 when it has no limit. @throws when it does not say */
function readUsedRatio(info: unknown): number {
  const field = (name: string) => new RegExp(`^${name}:(\\d+)\\r?$`, 'm').exec(String(info))?.[1];
  const [used, max] = [field('used_memory'), field('maxmemory')];
  if (used === undefined || max === undefined) throw new Error('INFO memory says neither used_memory nor maxmemory');
  return max === '0' ? 0 : Number(used) / Number(max);
}

/** A look that fails changes nothing: whether ingress can store anything at all then, each call finds out by itself. */
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
    // One that hangs is not joined by others.
    if (looking) return;
    looking = true;
    try {
      const ratios = (await askMasters('INFO', 'memory')).map(readUsedRatio);
      if (ratios.length === 0) throw new Error('no master was asked for its memory');
      judge(Math.max(...ratios));
      failing = false;
    } catch (error) {
      // Once an outage: nobody waits for this look.
      if (!failing) onFailure('memory', error);
      failing = true;
    } finally {
      looking = false;
    }
  }

  function judge(usedRatio: number): void {
    // Two bounds, so that ingress does not go on and off with each event that is trimmed.
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
