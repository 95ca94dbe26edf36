import type { ClaimBook } from './claims/claim-book.ts';
import type { RoomShare } from './room.ts';

/** The interval for checking a removed part, in case the message about its return was lost. */
const LOOK_MS = 5_000;

/** The absence of a part, which was removed, has a different generation, or is on a shard that is not responding. */
export interface Absence {
  readonly isGone: () => boolean;
  readonly begin: () => void;
  /** The shard has not responded for some time. Until it does, its claims don't count towards the limit. */
  readonly silent: () => void;
  /** Records that there was a response from the part. Returns true if the part was missing before. */
  readonly end: () => boolean;
  /** Stops looking for the part. */
  readonly stop: () => void;
  /** Returns the claims that don't count towards the limit. */
  readonly roomGiven: () => number;
}

/**
 * Keeps track of whether a part is missing. If the part was deleted, it is also removed from the list of parts and the
 * worker is stopped. If it was not deleted, the controller writes the part again and announces this on its channel.
 * Until this has happened, its claims don't count towards the limit, and the results of attempts are kept.
 */
export function createAbsence(deps: {
  readonly book: Pick<ClaimBook, 'count'>;
  readonly room: Pick<RoomShare, 'give' | 'take'>;
  /** Called if the part is still missing after some time and the worker has not been stopped. */
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
