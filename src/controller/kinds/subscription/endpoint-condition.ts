import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { SubscriptionStatus } from '../../../api/kinds/subscription.ts';
import {
  type EndpointHealth,
  FAILING_LIMIT_MS,
  isEnabledSince,
  warningOf,
} from '../../../core/delivery/endpoint-health.ts';
import { timestampOf } from '../../context/context.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import type { EventNote } from '../../engine/outcome.ts';

export interface EndpointFacts {
  /** As the data plane has it; undefined: it works; unknown: nobody looked yet, and what was said stands. */
  readonly health: EndpointHealth | 'unknown' | undefined;
  /** As the status has it. */
  readonly said: SubscriptionStatus['endpoint'];
  readonly saidOfFailing: Pick<Condition, 'status' | 'reason' | 'message'> | undefined;
  /** spec.endpoint.enabledAt, ms. */
  readonly enabledMs: number | undefined;
  /** Absent: the subscription only pulls. */
  readonly exists: boolean;
  readonly nowMs: number;
}

const condition = CONDITION.Subscription;
const reason = REASON.Subscription.EndpointFailing;

const HOW_TO_ENABLE =
  'nothing is sent and events are kept until it is enabled again: by spec.endpoint.enabledAt (a later time), or over REST by POST .../subscriptions/{subscription}/enable';

const DISABLED_MESSAGE: Readonly<Record<string, string>> = {
  Gone: 'the endpoint answered 410 Gone',
  Failing: 'no attempt succeeded for five days',
};

const FAILING = { 1: reason.FailingOneDay, 3: reason.FailingThreeDays, 4: reason.FailingFourDays } as const;

/** Since when and why the endpoint is disabled: what the status keeps, so that a Redis that lost it knows it again. */
export function endpointStatus({ health, said, enabledMs, exists, nowMs }: EndpointFacts): EndpointFacts['said'] {
  if (!exists) return undefined;
  const found = health === 'unknown' ? undefined : health?.disabled;
  const saidMs = said?.disabledAt === undefined ? undefined : Date.parse(said.disabledAt);
  const disabled =
    found !== undefined && (saidMs === undefined || found.ms > saidMs)
      ? ({
          disabledAt: new Date(found.ms).toISOString(),
          disabledBy: found.by === 'gone' ? 'Gone' : 'Failing',
        } as const)
      : said;
  if (disabled?.disabledAt === undefined) return undefined;
  return isEnabledSince(Date.parse(disabled.disabledAt), enabledMs, nowMs) ? undefined : disabled;
}

/** Why nothing is sent, and what helps. */
export function disabledMessage(disabled: NonNullable<EndpointFacts['said']>): string {
  return `${DISABLED_MESSAGE[disabled.disabledBy ?? ''] ?? 'the endpoint failed'} (${disabled.disabledAt}): ${HOW_TO_ENABLE}`;
}

/** Since when nothing but failures came, where that counts. */
function failingSinceMs({ health, enabledMs, exists, nowMs }: EndpointFacts): number | undefined {
  if (!exists || health === undefined || health === 'unknown' || isEnabledSince(health.sinceMs, enabledMs, nowMs))
    return undefined;
  return health.sinceMs;
}

/** Said only of an endpoint that failed for a day once, so that most subscriptions never have the condition. */
export function failingCondition(facts: EndpointFacts): DesiredCondition[] {
  const type = condition.EndpointFailing;
  if (facts.health === 'unknown' && facts.saidOfFailing !== undefined && facts.exists) {
    const { status, reason: why, message } = facts.saidOfFailing;
    return [{ type, status, reason: why, message }];
  }
  const sinceMs = failingSinceMs(facts);
  const { days } = sinceMs === undefined ? {} : warningOf(sinceMs, facts.nowMs);
  const disabled = endpointStatus(facts) !== undefined;
  if (days !== undefined && sinceMs !== undefined && !disabled) {
    const since = timestampOf(sinceMs);
    const until = timestampOf(sinceMs + FAILING_LIMIT_MS);
    const message = `no attempt succeeded since ${since}; it will be disabled at ${until}, or by the first attempt that fails after it`;
    return [{ type, status: 'True', reason: FAILING[days], message }];
  }
  if (facts.saidOfFailing === undefined || !facts.exists) return [];
  if (disabled)
    return [{ type, status: 'False', reason: reason.EndpointDisabled, message: 'it is disabled; see Live' }];
  const message = 'an attempt succeeded again, or the endpoint was enabled anew';
  return [{ type, status: 'False', reason: reason.Recovered, message }];
}

/** Events for what changes: a further warning, disabled, enabled again, works again. */
export function endpointEvents(facts: EndpointFacts): EventNote[] {
  const notes: EventNote[] = [];
  const disabled = endpointStatus(facts);
  if (disabled !== undefined && disabled.disabledAt !== facts.said?.disabledAt) {
    notes.push({ type: 'Warning', reason: 'EndpointDisabled', message: disabledMessage(disabled) });
  }
  if (disabled === undefined && facts.said !== undefined && facts.exists) {
    notes.push({
      type: 'Normal',
      reason: 'EndpointEnabled',
      message: 'the endpoint is enabled again; what waited is sent',
    });
  }
  const [failing] = failingCondition(facts);
  if (failing === undefined || failing.reason === facts.saidOfFailing?.reason) return notes;
  if (failing.status === 'True') notes.push({ type: 'Warning', reason: failing.reason, message: failing.message });
  else if (failing.reason === reason.Recovered) {
    notes.push({ type: 'Normal', reason: 'EndpointRecovered', message: failing.message });
  }
  return notes;
}

/** When the next warning is due, in ms from now; undefined: none is. */
export function nextWarningInMs(facts: EndpointFacts): number | undefined {
  const sinceMs = failingSinceMs(facts);
  if (sinceMs === undefined || endpointStatus(facts) !== undefined) return undefined;
  const { nextMs } = warningOf(sinceMs, facts.nowMs);
  return nextMs === undefined ? undefined : nextMs - facts.nowMs;
}
