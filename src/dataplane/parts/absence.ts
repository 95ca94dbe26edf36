import type { ClaimBook } from './claim-book.ts';
import type { Room } from './room.ts';

/** How often a part that is gone is looked for, should the message that it is back have been missed. */
const LOOK_MS = 5_000;

/** Whether a part is gone, or of another generation. */
export interface Absence {
  readonly isGone: () => boolean;
  readonly begin: () => void;
  /** Returns whether it was gone. */
  readonly end: () => boolean;
  /** Stops looking for it. */
  readonly stop: () => void;
  /** Returns claims that take no room. */
  readonly roomGiven: () => number;
}

/**
 * Tracks whether a part is gone. If it was removed for good, it also leaves the list of parts, and the worker is stopped.
 * Otherwise the controller writes it again, which is announced on its channel. Until then, claims take no room, and the
 * results of attempts are kept.
 */
export function createAbsence(deps: {
  readonly book: Pick<ClaimBook, 'count'>;
  readonly room: Pick<Room, 'give' | 'take'>;
  /** The part is still gone some time after it went, and nobody has stopped us. */
  readonly onMissing: () => void;
}): Absence {
  const { book, room } = deps;
  let given: number | undefined;
  let timer: NodeJS.Timeout | undefined;

  return {
    isGone: () => given !== undefined,
    begin() {
      if (given === undefined) {
        given = book.count();
        room.give(given);
      }
      clearTimeout(timer);
      timer = setTimeout(deps.onMissing, LOOK_MS);
    },
    end() {
      if (given === undefined) return false;
      room.take(given);
      given = undefined;
      clearTimeout(timer);
      return true;
    },
    stop: () => clearTimeout(timer),
    roomGiven: () => given ?? 0,
  };
}
