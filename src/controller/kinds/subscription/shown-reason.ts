import { REASON } from '../../../api/condition-reasons.ts';
import type { SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import { type DesiredCondition, findCondition } from '../../engine/conditions.ts';

/**
 * Returns the reason that is shown in the REASON column of `kubectl get`. This is the reason of the Live condition if
 * Live is not True. Otherwise, the reason of the Ready condition is used.
 */
export function shownReason(conditions: readonly DesiredCondition[]): Pick<SubscriptionStatus, 'reason'> {
  const live = findCondition(conditions, 'Live');
  // The reason NotAdmitted only refers to the Ready condition, so it is not useful here.
  const isUseful = live !== undefined && live.status !== 'True' && live.reason !== REASON.Subscription.Live.NotAdmitted;
  const reason = isUseful ? live.reason : findCondition(conditions, 'Ready')?.reason;
  return reason === undefined ? {} : { reason };
}
