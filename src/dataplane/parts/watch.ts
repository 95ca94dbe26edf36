import type { LookAtPart } from '../../part/claims/look.ts';
import type { Part } from '../../part/keys.ts';

/** Time without an exchange after which a dispatcher is considered inactive. */
export const READY_MS = 3_000;
/** Added to this time so that Redis has the same result. */
const LATER_MS = 50;

export interface WatchDeps {
  readonly look: LookAtPart;
  readonly part: Part;
  /** Name of this dispatcher, which is not watched. */
  readonly name: string;
  /** The part's clock, at the latest. */
  readonly nowMs: () => number;
  /** Number of claims known to this process. */
  readonly holds: () => number;
  /** Another dispatcher with claims has stopped responding, or pushed claims did not arrive. */
  readonly onLost: () => void;
  readonly onDue: (dueMs: number) => void;
}

export interface Watch {
  /** Others may have claimed something. */
  readonly start: () => void;
  /** The same, right after an exchange that returned expired claims. */
  readonly restart: () => void;
  readonly stop: () => void;
}

/**
 * Watches the other dispatchers with claims of a part, if this process has none. Otherwise, a crash of those
 * dispatchers would not be noticed. Checks when the first of them could have expired, and stops once none of them has
 * claims, so idle parts don't cause any commands.
 */
export function createWatch({ look, part, name, nowMs, holds, onLost, onDue }: WatchDeps): Watch {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  function startIn(delayMs: number): void {
    if (stopped) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      lookNow().catch(() => startIn(READY_MS));
    }, delayMs);
  }

  async function lookNow(): Promise<void> {
    const { dispatchers, dueMs } = await look(part);
    if (stopped) return;
    if (dueMs !== undefined) onDue(dueMs);
    if ((dispatchers.find(each => each.name === name)?.held ?? 0) > holds()) onLost();
    const others = dispatchers.filter(each => each.name !== name && each.held > 0);
    if (others.length === 0) return;
    const untilMs = Math.min(...others.map(each => each.untilMs));
    if (untilMs <= nowMs()) onLost();
    startIn(Math.min(READY_MS, Math.max(0, untilMs - nowMs())) + LATER_MS);
  }

  return {
    start: () => startIn(READY_MS + LATER_MS),
    restart() {
      clearTimeout(timer);
      timer = undefined;
      startIn(READY_MS + LATER_MS);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
