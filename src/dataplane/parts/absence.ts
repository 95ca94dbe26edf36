import type { ClaimBook } from './claim-book.ts';
import type { Room } from './room.ts';

/** How often a part that is gone is looked for, should the message that it is back have been missed. */
const LOOK_MS = 5_000;

/** Whether a part is gone, of another generation, or on a shard that doesn't answer. */
export interface Absence {
  readonly isGone: () => boolean;
  readonly begin: () => void;
  /** Its shard has been silent for some time. Claims take no room until it answers. */
  readonly silent: () => void;
  /** The part has answered. Returns whether it was gone. */
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
  let isGone = false;
  let timer: NodeJS.Timeout | undefined;

  /** Other parts use the room meanwhile. */
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
