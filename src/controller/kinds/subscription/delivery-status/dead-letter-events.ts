import type { DeliveryState } from '../../../../core/delivery/delivery-state.ts';
import { publicEventId } from '../../../../core/ids/public-event-id.ts';
import type { EventNote } from '../../../engine/outcome.ts';

const HOUR_MS = 3_600_000;

export interface DeadLetterEvents {
  /**
   * Returns the Event for the first dead letter of an hour, once; undefined: no new one.
   *
   * @param shownDead the status already showed dead letters
   */
  readonly of: (sub: string, state: DeliveryState, shownDead: boolean, nowMs: number) => EventNote | undefined;
  /** Starts a term at this time of Redis's clock, ms. An earlier leader reported what came before. */
  readonly begin: (nowMs: number) => void;
  readonly prune: (exists: (sub: string) => boolean) => void;
}

export function createDeadLetterEvents(): DeadLetterEvents {
  /** `sub_…` → time of the hour's first dead letter that was reported last, ms. */
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
