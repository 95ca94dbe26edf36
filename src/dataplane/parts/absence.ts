import type { ClaimBook } from './claim-book.ts';
import type { Room } from './room.ts';

/** Interval for checking a removed part, in case the message about its return was lost. */
const LOOK_MS = 5_000;

/** Whether a part was removed, has another generation, or is on an unresponsive shard. */
export interface Absence {
  readonly isGone: () => boolean;
  readonly begin: () => void;
  /** The shard has not responded for some time. Its claims don't use any room until it does. */
  readonly silent: () => void;
  /** Records a response of the part. Returns whether the part was missing before. */
  readonly end: () => boolean;
  /** Stops looking for it. */
  readonly stop: () => void;
  /** Returns claims that take no room. */
  readonly roomGiven: () => number;
}

/**
 * Tracks whether a part is missing. If the part was deleted, it is also removed from the list of parts and the worker
 * is stopped. Otherwise, the controller writes it again and announces this on its channel. Until then, claims don't use
 * any room and results of attempts are kept.
 */
export function createAbsence(deps: {
  readonly book: Pick<ClaimBook, 'count'>;
  readonly room: Pick<Room, 'give' | 'take'>;
  /** The part is still missing after some time, and the worker has not been stopped. */
  readonly onMissing: () => void;
}): Absence {
  const { book, room } = deps;
  let given: number | undefined;
  let isGone = false;
  let timer: NodeJS.Timeout | undefined;

  /** Other parts can use the room during this time. */
  function lend(): void {
    if (given !== undefined) return;
    given = book.count();
    room.give(given);
  }

  return {
    isGone: () => isGone,
    begin() {
      isGone = true;
      lend();
      clearTimeout(timer);
      timer = setTimeout(deps.onMissing, LOOK_MS);
    },
    silent: lend,
    end() {
      const wasGone = isGone;
      isGone = false;
      clearTimeout(timer);
      if (given !== undefined) room.take(given);
      given = undefined;
      return wasGone;
    },
    stop: () => clearTimeout(timer),
    roomGiven: () => given ?? 0,
  };
}
