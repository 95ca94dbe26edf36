import type { LookAtPart } from '../../part/claims/look.ts';
import type { Part } from '../../part/keys.ts';

/** How long a dispatcher counts as at work without an exchange. */
export const READY_MS = 3_000;
/** After the end of that time, so that Redis agrees. */
const LATER_MS = 50;

export interface WatchDeps {
  readonly look: LookAtPart;
  readonly part: Part;
  /** Our own name: it is not watched. */
  readonly name: string;
  /** The part's clock, at the latest. */
  readonly nowMs: () => number;
  /** Claims that we know of. */
  readonly holds: () => number;
  /** Another dispatcher holds claims and was not heard of for too long, or we were pushed some that did not arrive. */
  readonly onLost: () => void;
  readonly onDue: (dueMs: number) => void;
}

export interface Watch {
  /** Others may have claimed something. */
  readonly start: () => void;
  /** The same, just after an exchange, which told of those that had lapsed. */
  readonly restart: () => void;
  readonly stop: () => void;
}

/**
 * Watches the others that hold claims of a part, for whoever holds none: nobody else would notice that they died. Looks when
 * the first of them could have lapsed, and rests when none of them holds anything, so that a part that sleeps costs nothing.
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
