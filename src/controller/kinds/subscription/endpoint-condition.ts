import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import {
  type EndpointHealth,
  FAILING_LIMIT_MS,
  isEnabledSince,
  warningOf,
} from '../../../core/delivery/endpoint-health.ts';
import { timestampOf } from '../../../kube/object.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import type { EventNote } from '../../engine/outcome.ts';

export interface EndpointFacts {
  /**
   * The health reported by the data plane. Undefined if the endpoint is working. `unknown` means that the health has
   * not been read yet, so the status is not changed.
   */
  readonly health: EndpointHealth | 'unknown' | undefined;
  /** Current value of status.endpoint. */
  readonly recorded: SubscriptionStatus['endpoint'];
  readonly recordedFailing: Pick<Condition, 'status' | 'reason' | 'message'> | undefined;
  /** The value of spec.endpoint.enabledAt, in milliseconds. */
  readonly enabledMs: number | undefined;
  /** False for a subscription without an endpoint, which only uses the pull API. */
  readonly exists: boolean;
  readonly nowMs: number;
}

const condition = CONDITION.Subscription;
const reason = REASON.Subscription.EndpointFailing;

const HOW_TO_ENABLE =
  'events are kept until you enable the endpoint. Set spec.endpoint.enabledAt to a later time or call POST .../subscriptions/{subscription}/enable';

const DISABLED_MESSAGE: Readonly<Record<string, string>> = {
  Gone: 'the endpoint returned 410 Gone',
  Failing: 'the endpoint had no successful delivery for five days',
};

const FAILING = { 1: reason.FailingOneDay, 3: reason.FailingThreeDays, 4: reason.FailingFourDays } as const;

/**
 * Returns the time and the reason if the endpoint was disabled. We keep this in the status since the data in Redis may
 * be lost.
 */
export function endpointStatus({
  health,
  recorded,
  enabledMs,
  exists,
  nowMs,
}: EndpointFacts): EndpointFacts['recorded'] {
  if (!exists) return undefined;
  const found = health === 'unknown' ? undefined : health?.disabled;
  const recordedMs = recorded?.disabledAt === undefined ? undefined : Date.parse(recorded.disabledAt);
  const disabled =
    found !== undefined && (recordedMs === undefined || found.ms > recordedMs)
      ? ({
          disabledAt: new Date(found.ms).toISOString(),
          disabledBy: found.by === 'gone' ? 'Gone' : 'Failing',
        } as const)
      : recorded;
  if (disabled?.disabledAt === undefined) return undefined;
  return isEnabledSince(Date.parse(disabled.disabledAt), enabledMs, nowMs) ? undefined : disabled;
}

/** Returns a message that explains why the endpoint is disabled and how to enable it. */
export function disabledMessage(disabled: NonNullable<EndpointFacts['recorded']>): string {
  return `${DISABLED_MESSAGE[disabled.disabledBy ?? ''] ?? 'the endpoint failed'} (${disabled.disabledAt}): ${HOW_TO_ENABLE}`;
}

/** Returns the time of the first failure. Returns undefined if the failures should be ignored. */
function failingSinceMs({ health, enabledMs, exists, nowMs }: EndpointFacts): number | undefined {
  if (!exists || health === undefined || health === 'unknown' || isEnabledSince(health.sinceMs, enabledMs, nowMs))
    return undefined;
  return health.sinceMs;
}

/**
 * Returns the EndpointFailing condition. Most subscriptions don't have this condition, because it is only added after
 * an endpoint has been failing for one day.
 */
export function failingCondition(facts: EndpointFacts): DesiredCondition[] {
  const type = condition.EndpointFailing;
  if (facts.health === 'unknown' && facts.recordedFailing !== undefined && facts.exists) {
    const { status, reason: why, message } = facts.recordedFailing;
    return [{ type, status, reason: why, message }];
  }
  const sinceMs = failingSinceMs(facts);
  const { days } = sinceMs === undefined ? {} : warningOf(sinceMs, facts.nowMs);
  const disabled = endpointStatus(facts) !== undefined;
  if (days !== undefined && sinceMs !== undefined && !disabled) {
    const since = timestampOf(sinceMs);
    const until = timestampOf(sinceMs + FAILING_LIMIT_MS);
    const message = `the endpoint has had no successful delivery since ${since}. It will be disabled at ${until}, or by the first failed attempt after this time`;
    return [{ type, status: 'True', reason: FAILING[days], message }];
  }
  if (facts.recordedFailing === undefined || !facts.exists) return [];
  if (disabled)
    return [
      {
        type,
        status: 'False',
        reason: reason.EndpointDisabled,
        message: 'the endpoint is disabled. For more information, see the Live condition',
      },
    ];
  const message = 'an attempt succeeded, or you enabled the endpoint again';
  return [{ type, status: 'False', reason: reason.Recovered, message }];
}

/**
 * Returns the Events for endpoint changes. An Event is returned for each new warning, and when the endpoint is
 * disabled, re-enabled, or has recovered.
 */
export function endpointEvents(facts: EndpointFacts): EventNote[] {
  const notes: EventNote[] = [];
  const disabled = endpointStatus(facts);
  if (disabled !== undefined && disabled.disabledAt !== facts.recorded?.disabledAt) {
    notes.push({ type: 'Warning', reason: 'EndpointDisabled', message: disabledMessage(disabled) });
  }
  if (disabled === undefined && facts.recorded !== undefined && facts.exists) {
    notes.push({
      type: 'Normal',
      reason: 'EndpointEnabled',
      message: 'the endpoint is enabled again. Sluice sends the waiting events',
    });
  }
  const [failing] = failingCondition(facts);
  if (failing === undefined || failing.reason === facts.recordedFailing?.reason) return notes;
  if (failing.status === 'True') notes.push({ type: 'Warning', reason: failing.reason, message: failing.message });
  else if (failing.reason === reason.Recovered) {
    notes.push({ type: 'Normal', reason: 'EndpointRecovered', message: failing.message });
  }
  return notes;
}

/** Returns the time until the next warning in milliseconds, or undefined if there are no more warnings. */
export function nextWarningInMs(facts: EndpointFacts): number | undefined {
  const sinceMs = failingSinceMs(facts);
  if (sinceMs === undefined || endpointStatus(facts) !== undefined) return undefined;
  const { nextMs } = warningOf(sinceMs, facts.nowMs);
  return nextMs === undefined ? undefined : nextMs - facts.nowMs;
}
