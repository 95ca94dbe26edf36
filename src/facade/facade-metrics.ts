import type { ProblemCode } from '../core/problems/problems.ts';
import { PROBLEMS } from '../core/problems/problems.ts';
import { createLabeledCounter, Gauge, Histogram, type Registry } from '../telemetry/metrics.ts';
import { TOKEN_REFUSALS, type TokenRefusal } from './auth/token-refusal.ts';
import { CALL_LIMITS, type CallLimit } from './contract/rate-limit.ts';

/** Event operations available to partners over REST. */
const INBOX_OPERATIONS = ['skipped', 'acknowledged', 'pulled', 'replayed', 'recovered', 'tested'] as const;
export type InboxOperation = (typeof INBOX_OPERATIONS)[number];

/** The problem codes of responses with 403. */
const FORBIDDEN = (Object.keys(PROBLEMS) as ProblemCode[]).filter(code => PROBLEMS[code].status === 403);

/** FacadeMetrics groups all facade metrics. */
export interface FacadeMetrics {
  /**
   * Increments the number of running calls. The caller must call `leave` when the response has been sent or its
   * connection was closed.
   */
  readonly enter: () => void;
  readonly leave: () => void;
  /** Changes the number of calls waiting for their turn. */
  readonly waiting: (change: 1 | -1) => void;
  /**
   * Counts a call that got a response. @param route is the method and the path template, or `none` if no route matched
   */
  readonly answered: (route: string, status: number, seconds: number) => void;
  readonly refused: (reason: TokenRefusal) => void;
  /** Counts a call that was rejected because of a limit. */
  readonly limited: (limit: CallLimit) => void;
  /** Counts a call that was rejected with 403. */
  readonly forbidden: (code: ProblemCode) => void;
  readonly audited: (result: 'written' | 'lost', lines: number) => void;
  readonly did: (operation: InboxOperation, events: number) => void;
}

export function createFacadeMetrics(registry: Registry): FacadeMetrics {
  const registers = [registry];
  const requestSeconds = new Histogram({
    name: 'sluice_facade_request_duration_seconds',
    help: 'The duration of /waas requests in seconds, by route and status. HEAD requests count as GET.',
    labelNames: ['route', 'status'] as const,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const inFlight = new Gauge({
    name: 'sluice_facade_requests_in_flight',
    help: 'The number of requests currently in progress.',
    registers,
  });
  const waiting = new Gauge({
    name: 'sluice_facade_requests_waiting',
    help: 'The number of requests in progress that are waiting for other requests for the same account.',
    registers,
  });
  const refused = createLabeledCounter(registry, {
    name: 'sluice_facade_refused_tokens_total',
    help: 'The number of requests rejected because of their token, by reason (undecided if the keys of the issuer were not available).',
    label: 'reason',
    known: TOKEN_REFUSALS,
  });
  const limited = createLabeledCounter(registry, {
    name: 'sluice_facade_limited_total',
    help: 'The number of requests rejected because of a rate limit, by limit: address (of the client), caller and account (no points left), concurrency (too many concurrent requests from the same address), store (the account has used its share of the Redis time), or turn (too many requests for the same account are waiting).',
    label: 'limit',
    known: CALL_LIMITS,
  });
  const did = createLabeledCounter(registry, {
    name: 'sluice_facade_inbox_events_total',
    help: 'The number of inbox events skipped, acknowledged, pulled, replayed, recovered, or sent as tests by partners.',
    label: 'operation',
    known: INBOX_OPERATIONS,
  });
  const forbidden = createLabeledCounter(registry, {
    name: 'sluice_facade_forbidden_total',
    help: 'The number of requests rejected with 403, by problem code.',
    label: 'code',
    known: FORBIDDEN,
  });
  const audited = createLabeledCounter(registry, {
    name: 'sluice_facade_audit_lines_total',
    help: 'The number of audit lines, by result: written to their destination, or lost because the destination did not accept them.',
    label: 'result',
    known: ['written', 'lost'],
  });
  return {
    enter: () => inFlight.inc(),
    leave: () => inFlight.dec(),
    waiting: change => waiting.inc(change),
    answered: (route, status, seconds) => requestSeconds.observe({ route, status }, seconds),
    refused,
    limited,
    forbidden,
    audited,
    did,
  };
}
