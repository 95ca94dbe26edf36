import type { LookAtPart } from '../../part/claims/look.ts';
import type { Part } from '../../part/keys.ts';

/** If there was no exchange for this time, we consider a dispatcher to be inactive. */
export const READY_MS = 3_000;
/** Added to this time so that Redis has the same result. */
const LATER_MS = 50;

export interface WatchDeps {
  readonly look: LookAtPart;
  readonly part: Part;
  /** The name of this dispatcher, which does not watch itself. */
  readonly name: string;
  /** The latest possible time of the part's clock. */
  readonly nowMs: () => number;
  /** The number of claims that this process knows about. */
  readonly holds: () => number;
  /** Either another dispatcher with claims is not responding any more, or claims that were pushed have not arrived. */
  readonly onLost: () => void;
  readonly onDue: (dueMs: number) => void;
}

export interface Watch {
  /** Other dispatchers may have made claims. */
  readonly start: () => void;
  /** Like `start`, but immediately after an exchange that has returned expired claims. */
  readonly restart: () => void;
  readonly stop: () => void;
}

/**
 * If this process does not have any claims for a part, it watches the other dispatchers that have claims. If it did
 * not, nobody would notice a crash of those dispatchers. The watch checks when the first of them could have expired. It
 * stops when none of them has any claims, so an idle part causes no commands.
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
