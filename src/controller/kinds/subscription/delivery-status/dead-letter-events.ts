import type { DeliveryState } from '../../../../core/delivery/delivery-state.ts';
import { publicEventId } from '../../../../core/ids/public-event-id.ts';
import type { EventNote } from '../../../engine/outcome.ts';

const HOUR_MS = 3_600_000;

export interface DeadLetterEvents {
  /**
   * Returns an Event for the first dead letter in each hour. Returns undefined if there is no new dead letter, or if
   * its Event has already been returned.
   *
   * @param shownDead whether the status already showed dead letters
   */
  readonly of: (sub: string, state: DeliveryState, shownDead: boolean, nowMs: number) => EventNote | undefined;
  /**
   * Starts a new term at the given time in milliseconds, measured by the Redis clock. An earlier leader has already
   * reported any dead letters before this time.
   */
  readonly begin: (nowMs: number) => void;
  readonly prune: (exists: (sub: string) => boolean) => void;
}

export function createDeadLetterEvents(): DeadLetterEvents {
  /**
   * The time of the last reported dead letter (in milliseconds), for each subscription id (`sub_…`): always the first
   * dead letter within the hour.
   */
  const reported = new Map<string, number>();
  let begunMs = 0;
  return {
    of(sub, { dead, firstDead }, shownDead, nowMs) {
      if (firstDead === undefined || reported.get(sub) === firstDead.ms) return undefined;
      const known = reported.has(sub);
      reported.set(sub, firstDead.ms);
      const isNew = known || firstDead.ms >= begunMs || (dead > 0 && !shownDead);
      if (!isNew || nowMs - firstDead.ms >= HOUR_MS) return undefined;
      const id = publicEventId(firstDead.ref, sub);
      return {
        type: 'Warning',
        reason: 'DeadLetter',
        message: `event ${id} is a dead letter because its last attempt failed. To inspect it, call GET /waas/integrations/{integration}/events/${id}. You can then recover or replay the event. Sluice does not record Events for other dead letters in the same hour.`,
      };
    },
    begin(nowMs) {
      begunMs = nowMs;
      reported.clear();
    },
    prune(exists) {
      for (const sub of reported.keys()) if (!exists(sub)) reported.delete(sub);
    },
  };
}
