import { REASON } from '../../../api/condition-reasons.ts';
import type { SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import { type DesiredCondition, findCondition } from '../../engine/conditions.ts';

/**
 * Returns the reason to show in the REASON column of `kubectl get`. If Live is not True, this is the reason of the Live
 * condition. Otherwise, it is the reason of the Ready condition.
 */
export function shownReason(conditions: readonly DesiredCondition[]): Pick<SubscriptionStatus, 'reason'> {
  const live = findCondition(conditions, 'Live');
  // NotAdmitted merely refers to the Ready condition, so it wouldn't be useful here.
  const isUseful = live !== undefined && live.status !== 'True' && live.reason !== REASON.Subscription.Live.NotAdmitted;
  const reason = isUseful ? live.reason : findCondition(conditions, 'Ready')?.reason;
  return reason === undefined ? {} : { reason };
}
