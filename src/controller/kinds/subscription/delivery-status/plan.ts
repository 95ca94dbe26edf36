import type { DeliveryStatus } from '../../../../api/delivery-status.ts';
import type { DeliveryState } from '../../../../core/delivery/delivery-state.ts';
import { timestampOf } from '../../../context/context.ts';

/** The state of deliveries before the first delivery. */
export const NO_DELIVERY: DeliveryStatus = { deadLetters: false, backlog: '0' };

/**
 * Returns the state of deliveries that should be written to the status.
 *
 * @param shown the state that is currently in the status. It is kept if the data plane does not have newer data, for
 * example after Redis lost its data.
 */
export function planDelivery(
  state: DeliveryState,
  shown: DeliveryStatus,
  at: { readonly nowMs: number; readonly retentionMs: number },
): DeliveryStatus {
  const { attempt, dead, youngestDeadMs, backlog } = state;
  const known = attempt === undefined || attempt.outcome === shown.lastAttempt;
  const attempted = known
    ? { lastAttempt: shown.lastAttempt, lastAttemptSince: shown.lastAttemptSince }
    : { lastAttempt: attempt.outcome, lastAttemptSince: timestampOf(attempt.sinceMs) };
  // Events that are older than the retention can no longer be recovered or replayed.
  const keeps = youngestDeadMs === undefined || at.nowMs < youngestDeadMs + at.retentionMs;
  return { ...attempted, deadLetters: dead > 0 && keeps, backlog };
}

/** Returns how much the two states differ. The field `lastAttemptSince` is ignored. */
export function differenceOf(one: DeliveryStatus, other: DeliveryStatus): 'none' | 'backlog' | 'outcome' {
  if (one.lastAttempt !== other.lastAttempt || one.deadLetters !== other.deadLetters) return 'outcome';
  return one.backlog === other.backlog ? 'none' : 'backlog';
}
