import type { AttemptOutcome } from '../../api/delivery-status.ts';
import { nextAttempt } from '../../core/delivery/backoff.ts';
import type { EventMeta } from '../../core/events/event-meta.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import { endAttemptSpan, startAttemptSpan } from './attempt-span.ts';
import type { AskConsent } from './consent.ts';
import type { AttemptResult, EndpointClient } from './endpoint-client.ts';
import { type EventHeaders, eventHeaders } from './headers.ts';
import { SHOWN_OUTCOMES } from './outcome.ts';
import type { OpenSubscription } from './subscription.ts';

/**
 * The number of lapsed claims in a row before an event is turned into a dead letter. At this point we assume the event
 * is what crashed its dispatchers.
 */
export const POISON_LAPSES = 5;
/**
 * If the request for a claim has not been sent after this time, the claim is released, so deactivations and blocks may
 * take up to one second to become effective.
 */
const CLAIM_TO_WIRE_MS = 1_000;

const RELEASED = { outcome: 'released', reason: 'released' } as const;

/** An event which has been claimed for a subscription. */
export interface Delivery {
  /** The number of attempts which have failed. */
  readonly attempts: number;
  /** The number of claims which have lapsed since the last attempt. */
  readonly lapses: number;
  /** Set for replays. */
  readonly replay: string | undefined;
  readonly isTest: boolean;
  /** The time at which the event was accepted by ingress, in milliseconds of the Redis clock. */
  readonly acceptedMs: number;
  /** When it was claimed, on the monotonic clock. */
  readonly claimedAtMs: number;
}

/** An accepted event. */
export interface StoredEvent {
  readonly meta: EventMeta;
  /** Made of `meta`, once for all attempts. */
  readonly headers: EventHeaders;
  readonly body: Buffer;
}

/** The result of a delivery, or what should be done next. */
export interface Ending {
  /**
   * gone: the response was 410, which disables the endpoint and keeps the event open. released: no attempt was made.
   */
  readonly outcome: 'delivered' | 'dead' | 'expired' | 'failed' | 'gone' | 'released';
  /** The status code. If there is none, this is the reason. */
  readonly reason: string;
  /** If there was no attempt, this is not set. */
  readonly latencyMs?: number;
  /** The attempt's result, which is used for the subscription status. */
  readonly attempted?: AttemptOutcome;
  /** When a failed attempt is repeated. */
  readonly dueMs?: number;
  /** Response to a failed attempt, up to 16 KiB. */
  readonly responseBody?: Buffer;
  /** Set if the response was longer than that. */
  readonly responseTruncated?: true;
}

export interface DeliverDeps {
  readonly attempt: EndpointClient['attempt'];
  /** Optional. If unset, endpoints are not asked for their consent. */
  readonly askConsent?: AskConsent | undefined;
  /** Redis clock, used for stored times. */
  readonly nowMs: () => number;
  /** Wall clock of this machine, used for `webhook-timestamp`. */
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly random: () => number;
  /** Returns true if this process still holds its claims. Defaults to true. */
  readonly holdsClaims?: () => boolean;
  readonly onAttempt: (result: AttemptResult, outcome: Ending['outcome'], delivery: Delivery) => void;
  /** Optional. Attempts won't be traced if unset. */
  readonly tracing?: Tracing | undefined;
  /** Called if an event has ended without another attempt. */
  readonly onGivenUp?: (outcome: Ending['outcome']) => void;
}

/**
 * Processes an event which has been claimed. This makes at most one attempt and never rejects.
 *
 * @param event this is undefined if the event has been removed by retention
 */
export async function deliver(
  deps: DeliverDeps,
  subscription: OpenSubscription,
  delivery: Delivery,
  event: StoredEvent | undefined,
): Promise<Ending> {
  const { attempts } = delivery;
  const giveUp = (outcome: Ending['outcome'], reason: string): Ending => {
    deps.onGivenUp?.(outcome);
    return { outcome, reason };
  };
  if (event === undefined) return giveUp('expired', 'expired');
  if (delivery.lapses >= POISON_LAPSES) return giveUp('dead', 'poison');
  const isLate = () => deps.monotonicMs() - delivery.claimedAtMs > CLAIM_TO_WIRE_MS || deps.holdsClaims?.() === false;
  if (isLate()) return RELEASED;

  const { endpoint, buildHeaders } = subscription;
  const refused = deps.askConsent && (await deps.askConsent(endpoint));
  if (refused !== undefined) return judgeAttempt(deps, endpoint.retryMs, delivery, refused);
  // The gate may have closed while the endpoint was asked. The next claim finds its response.
  if (deps.askConsent !== undefined && isLate()) return RELEASED;
  const span = deps.tracing && startAttemptSpan(deps.tracing, { subscription, event, attempts });
  // Partners continue the trace from the attempt span. When tracing is disabled, they'll receive whatever value the
  // producer sent.
  const headers = span === undefined ? event.headers : eventHeaders({ ...event.meta, traceparent: span.traceparent });
  const result = await deps.attempt({
    url: endpoint.url,
    timeoutMs: endpoint.timeoutMs,
    headers: buildHeaders(headers, event.body, deps.wallMs(), delivery.replay),
    body: event.body,
    // The gate may close, or another dispatcher may take over, while the connection is opened.
    maySend: () => !isLate(),
  });
  if (span !== undefined) endAttemptSpan(span, result);
  if (result.isUnsent) return RELEASED;
  return judgeAttempt(deps, endpoint.retryMs, delivery, result);
}

function judgeAttempt(
  deps: DeliverDeps,
  retryMs: readonly number[],
  delivery: Delivery,
  result: AttemptResult,
): Ending {
  const ending = judge(deps, retryMs, delivery, result);
  deps.onAttempt(result, ending.outcome, delivery);
  return ending;
}

function judge(
  { nowMs, random }: DeliverDeps,
  retryMs: readonly number[],
  { attempts, isTest }: Delivery,
  result: AttemptResult,
): Ending {
  const reason = String(result.status ?? result.reason);
  const latencyMs = Math.round(result.latencyMs);
  const shown = SHOWN_OUTCOMES[result.reason];
  const attempted = shown === undefined ? {} : { attempted: shown };
  if (result.outcome === 'delivered') return { outcome: 'delivered', reason, latencyMs, ...attempted };
  const answered = {
    reason,
    latencyMs,
    ...attempted,
    responseBody: result.responseBody,
    ...(result.truncated ? { responseTruncated: true as const } : {}),
  };
  if (result.outcome === 'disabled' && !isTest) return { outcome: 'gone', ...answered };
  const next = nextAttempt({
    // No retries for test events: the caller can see the result and repeat the test.
    schedule: isTest ? [] : retryMs,
    failures: attempts + 1,
    randomUnit: random(),
    retryAfterMs: result.retryAfterMs,
    nowMs: nowMs(),
  });
  return next === 'dead' ? { outcome: 'dead', ...answered } : { outcome: 'failed', dueMs: next.dueAtMs, ...answered };
}
