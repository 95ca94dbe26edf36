import { REASON } from '../../../api/condition-reasons.ts';
import type { SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import { type DesiredCondition, findCondition } from '../../engine/conditions.ts';

/** Returns what `kubectl get` prints as REASON: the reason of Live if events do not flow, else the reason of Ready. */
export function shownReason(conditions: readonly DesiredCondition[]): Pick<SubscriptionStatus, 'reason'> {
  const live = findCondition(conditions, 'Live');
  // NotAdmitted only points at Ready.
  const isUseful = live !== undefined && live.status !== 'True' && live.reason !== REASON.Subscription.Live.NotAdmitted;
  const reason = isUseful ? live.reason : findCondition(conditions, 'Ready')?.reason;
  return reason === undefined ? {} : { reason };
}
