import { CONDITION, REASON } from '../../../../api/condition-reasons.ts';
import type { DeliveryStatus } from '../../../../api/delivery-status.ts';
import type { DesiredCondition } from '../../../engine/conditions.ts';

const MESSAGE =
  'the endpoint has not agreed to receive events. Sluice keeps them in the inbox. The endpoint must respond to OPTIONS requests with the WebHook-Allowed-Origin header. For more information, see the section about consent in the documentation about deliveries. The dispatcher will ask the endpoint again within two minutes';

/**
 * Returns a subscription's conditions, with Live=False while its endpoint has not given its consent. Only the
 * dispatcher knows this, so it follows from the most recent attempt.
 */
export function withConsent(
  conditions: readonly DesiredCondition[],
  { spec }: { readonly spec: { readonly endpoint?: unknown } },
  { lastAttempt }: DeliveryStatus,
): readonly DesiredCondition[] {
  if (lastAttempt !== 'ConsentMissing' || spec.endpoint === undefined) return conditions;
  const type = CONDITION.Subscription.Live;
  const reason = REASON.Subscription.Live.WaitingForConsent;
  return conditions.map(condition =>
    condition.type === type && condition.status === 'True'
      ? { type, status: 'False', reason, message: MESSAGE }
      : condition,
  );
}
