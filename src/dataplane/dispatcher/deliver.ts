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
 * The number of lapsed claims after which an event becomes a dead letter. We then assume that the event caused its
 * dispatchers to crash.
 */
export const POISON_LAPSES = 5;
/**
 * A claim is released if its attempt has not started after this time. A deactivation or a block can therefore take
 * effect up to one second late.
 */
const CLAIM_TO_WIRE_MS = 1_000;

export interface DeliverDeps {
  readonly attempt: EndpointClient['attempt'];
  /** The clock of Redis. It is used for stored times. */
  readonly nowMs: () => number;
  /** The wall clock of this machine. It is used for `webhook-timestamp`. */
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
  readonly random: () => number;
  readonly onAttempt: (result: AttemptResult, completion: Completion) => void;
  /** If this is not set, the attempts will not be traced. */
  readonly tracing?: Tracing | undefined;
  /** This is called when an event ends without another attempt. */
  readonly onGivenUp?: (outcome: Completion['outcome']) => void;
}

/**
 * Processes a claimed event with at most one attempt, and returns the completion that must be written. It never
 * rejects.
 */
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
  // The partner continues the trace of the attempt's span. If tracing is disabled, the partner receives the value that
  // the producer sent.
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
      // A test event is not retried because the caller sees the result and can repeat the test.
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
