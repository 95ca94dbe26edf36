import type { DeliveryStatus } from '../../../../api/delivery-status.ts';
import type { DeliveryState } from '../../../../core/delivery/delivery-state.ts';
import { timestampOf } from '../../../../kube/object.ts';

/** Delivery state before anything has been delivered. */
export const NO_DELIVERY: DeliveryStatus = { deadLetters: false, backlog: '0' };

/**
 * Returns the delivery state to write to the status.
 *
 * @param shown current state in the status, kept if the data plane has nothing newer, e.g. after Redis lost its data
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
  // When the retention period has ended, events can no longer be recovered or replayed.
  const keeps = youngestDeadMs === undefined || at.nowMs < youngestDeadMs + at.retentionMs;
  return { ...attempted, deadLetters: dead > 0 && keeps, backlog };
}

/** Returns the degree of difference between two states. Ignores `lastAttemptSince`. */
export function differenceOf(one: DeliveryStatus, other: DeliveryStatus): 'none' | 'backlog' | 'outcome' {
  if (one.lastAttempt !== other.lastAttempt || one.deadLetters !== other.deadLetters) return 'outcome';
  return one.backlog === other.backlog ? 'none' : 'backlog';
}
