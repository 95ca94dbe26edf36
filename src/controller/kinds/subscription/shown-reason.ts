import type { SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import { type DesiredCondition, findCondition } from '../../engine/conditions.ts';

/**
 * Returns the reason to show in the REASON column of `kubectl get`. If the subscription is admitted but not Live, this
 * is the reason of the Live condition. In all other cases, this is the reason of the Ready condition. If Ready is not
 * True, the Live condition may belong to an earlier generation.
 */
export function shownReason(conditions: readonly DesiredCondition[]): Pick<SubscriptionStatus, 'reason'> {
  const ready = findCondition(conditions, 'Ready');
  const live = findCondition(conditions, 'Live');
  const isHeld = ready?.status === 'True' && live !== undefined && live.status !== 'True';
  const reason = isHeld ? live.reason : ready?.reason;
  return reason === undefined ? {} : { reason };
}
