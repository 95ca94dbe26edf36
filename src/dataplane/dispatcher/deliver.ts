import { nextAttempt } from '../../core/delivery/backoff.ts';
import { isTestRef } from '../../core/events/test-event.ts';
import { type Claim, type Completion, replayOf } from '../../redis/inbox-store.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import { endAttemptSpan, startAttemptSpan } from './attempt-span.ts';
import type { AttemptResult, EndpointClient } from './endpoint-client.ts';
import type { CachedEvent } from './event-cache.ts';
import { SHOWN_OUTCOMES } from './outcome.ts';
import type { OpenSubscription } from './subscription.ts';

/**
 * Number of lapsed claims before an event is turned into a dead letter. At this point we assume the event is what
 * crashed its dispatchers.
 */
export const POISON_LAPSES = 5;
/**
 * Claims are released when their attempt hasn't started after this time. This means that deactivations and blocks may
 * take up to one second to become effective.
 */
const CLAIM_TO_WIRE_MS = 1_000;

export interface DeliverDeps {
  readonly attempt: EndpointClient['attempt'];
  /** Redis clock, used for stored times. */
  readonly nowMs: () => number;
  /** Wall clock of this machine, used for `webhook-timestamp`. */
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly random: () => number;
  readonly onAttempt: (result: AttemptResult, completion: Completion) => void;
  /** Optional. Attempts won't be traced if unset. */
  readonly tracing?: Tracing | undefined;
  /** Called when an event ends without a further attempt. */
  readonly onGivenUp?: (outcome: Completion['outcome']) => void;
}

/** Processes a claimed event, making at most one attempt. Returns the completion to be written, and never rejects. */
export async function deliver(
  deps: DeliverDeps,
  subscription: OpenSubscription,
  claim: Claim,
  token: string,
  claimedAtMs: number,
  event: CachedEvent | undefined,
): Promise<Completion> {
  const { lane, ref, attempts } = claim;
  const done = (outcome: Completion['outcome'], why: string): Completion => {
    deps.onGivenUp?.(outcome);
    return { lane, ref, token, outcome, record: `${outcome} ${deps.nowMs()} ${attempts} ${why} -` };
  };
  if (event === undefined) return done('expired', 'expired');
  if (claim.lapses >= POISON_LAPSES) return done('dead', 'poison');
  if (deps.monotonicMs() - claimedAtMs > CLAIM_TO_WIRE_MS) return { lane, ref, token, outcome: 'released' };

  const { endpoint, buildHeaders } = subscription;
  const span = deps.tracing && startAttemptSpan(deps.tracing, { subscription, event, attempts });
  // Partners continue the trace from the attempt span. When tracing is disabled, they'll receive whatever value the
  // producer sent.
  const meta = span === undefined ? event.meta : { ...event.meta, traceparent: span.traceparent };
  const result = await deps.attempt({
    url: endpoint.url,
    timeoutMs: endpoint.timeoutMs,
    headers: buildHeaders(meta, event.body, deps.wallMs(), replayOf(lane)),
    body: event.body,
  });
  if (span !== undefined) endAttemptSpan(span, result);
  const nowMs = deps.nowMs();
  const made = attempts + 1;
  const latencyMs = Math.round(result.latencyMs);
  const why = result.status ?? result.reason;
  const shown = SHOWN_OUTCOMES[result.reason];
  const attempted = shown === undefined ? {} : { attempted: shown };
  const completion = ((): Completion => {
    if (result.outcome === 'delivered') {
      const record = `delivered ${nowMs} ${made} ${why} ${latencyMs}`;
      return { lane, ref, token, outcome: 'delivered', record, ...attempted };
    }
    const attempt = `${nowMs},${why},${latencyMs}`;
    const answer = {
      ...attempted,
      responseBody: result.responseBody,
      ...(result.truncated ? { responseTruncated: true as const } : {}),
    };
    if (result.outcome === 'disabled' && !isTestRef(ref)) {
      return { lane, ref, token, outcome: 'gone', attempt, ...answer };
    }
    const next = nextAttempt({
      // No retries for test events: the caller can see the result and repeat the test.
      schedule: isTestRef(ref) ? [] : endpoint.retryMs,
      failures: made,
      randomUnit: deps.random(),
      retryAfterMs: result.retryAfterMs,
      nowMs,
    });
    if (next === 'dead') {
      const record = `dead ${nowMs} ${made} ${why} ${latencyMs}`;
      return { lane, ref, token, outcome: 'dead', record, ...answer };
    }
    return { lane, ref, token, outcome: 'failed', dueMs: next.dueAtMs, attempt, ...answer };
  })();
  deps.onAttempt(result, completion);
  return completion;
}
