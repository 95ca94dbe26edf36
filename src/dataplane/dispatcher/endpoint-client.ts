import { createSecureContext } from 'node:tls';
import { createNetworkPolicy, type EndpointNetworks, judgeEndpoint } from '../../core/delivery/network.ts';
import { parseRetryAfter } from '../../core/delivery/retry-after.ts';
import { append } from '../../http/collected-bytes.ts';
import type { Exchange } from './http/connection.ts';
import { createConnectionPool, createOrigin, type Origin } from './http/connection-pool.ts';
import type { ResolveName } from './http/name-lookup.ts';
import { type Method, requestHead, requestStart } from './http/request-head.ts';
import { type AttemptReason, judgeStatus, type Outcome, outcomeOf } from './outcome.ts';

/** The maximum number of response body bytes to read and store. */
export const RESPONSE_BODY_MAX = 16 * 1024;

const DEFAULT_TIMEOUT_MS = 15_000;
const TARGETS_MAX = 20_000;
const NO_BODY = Buffer.alloc(0);

export interface AttemptRequest {
  /** Defaults to POST. */
  readonly method?: Method;
  readonly url: string;
  /** The timeout for the whole attempt, from name lookup to the last byte of the response. Defaults to 15 s. */
  readonly timeoutMs?: number;
  /** The lines returned by a header builder. Undefined if one of them is not allowed. */
  readonly headers: string | undefined;
  readonly body: Buffer;
  /**
   * Called when a new connection is open, which may take as long as the timeout. If this returns false, nothing is sent
   * and the connection is kept for the next attempt. Defaults to true.
   */
  readonly maySend?: () => boolean;
}

export interface AttemptResult {
  readonly outcome: Outcome;
  readonly reason: AttemptReason;
  /** Status code. Not set if we never received a status line. */
  readonly status?: number;
  /** The delay requested by `Retry-After` in a failed response. Capped at 10 h. */
  readonly retryAfterMs?: number;
  /** The value of `WebHook-Allowed-Origin`, in responses to OPTIONS. */
  readonly allowedOrigin?: string;
  readonly latencyMs: number;
  /** The first bytes of the body (up to 16 KiB). */
  readonly responseBody: Buffer;
  /** True if the body is incomplete, which happens if it is too long, or if the connection was closed. */
  readonly truncated: boolean;
  /** Set if nothing was sent because of `maySend`. There is no outcome. */
  readonly isUnsent?: true;
}

export interface EndpointClient {
  /** Sends a single HTTP request. Network and endpoint failures don't cause a rejection. */
  readonly attempt: (request: AttemptRequest, signal?: AbortSignal) => Promise<AttemptResult>;
  /** Closes all of the connections. Any current or later attempts will end as `aborted`. */
  readonly close: () => Promise<void>;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const unanswered = (reason: AttemptReason): { outcome: Outcome; reason: AttemptReason } => ({
  outcome: outcomeOf(reason),
  reason,
});

type Target = { origin: Origin; parsed: URL; start: string } | 'endpoint_refused' | 'address_refused';

/**
 * Creates a client for sending attempts to many endpoints. The caller must limit the number of concurrent attempts. The
 * result depends on the status line alone, even if the connection fails afterwards. If the rest mattered, an event
 * whose 2xx response has an endless body would be sent twice.
 *
 * @param connectTimeoutMs limit for name lookup, TCP, and TLS together (default 5 s)
 * @param ca PEM certificates replacing those trusted by the system
 * @param nowMs wall clock for dates in `Retry-After`
 * @param monotonicMs clock for `latencyMs`
 */
export function createEndpointClient(
  options: EndpointNetworks & {
    connectTimeoutMs?: number;
    idleTimeoutMs?: number;
    ca?: string;
    resolveName?: ResolveName;
    nowMs?: () => number;
    monotonicMs?: () => number;
  },
): EndpointClient {
  const policy = createNetworkPolicy(options);
  const nowMs = options.nowMs ?? Date.now;
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const pool = createConnectionPool({
    policy,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    idleTimeoutMs: options.idleTimeoutMs ?? 4000,
    secureContext: createSecureContext(options.ca === undefined ? {} : { ca: options.ca }),
    ...(options.resolveName === undefined ? {} : { resolveName: options.resolveName }),
  });

  let closed = false;

  // Cache targets, since parsing and checking a URL is more expensive than sending a request. There are usually only a
  // few endpoints, which are used often.
  const targets = new Map<string, Target>();
  const origins = new Map<string, Origin>();
  const targetOf = (url: string): Target => {
    const known = targets.get(url);
    if (known !== undefined) return known;
    if (targets.size >= TARGETS_MAX) {
      targets.clear();
      origins.clear();
    }
    const target = resolveTarget(url);
    targets.set(url, target);
    return target;
  };
  const resolveTarget = (url: string): Target => {
    const judgement = judgeEndpoint(url, policy);
    if (judgement === 'address_refused') return judgement;
    if (judgement !== 'ok') return 'endpoint_refused';
    const parsed = new URL(url);
    const origin = origins.get(parsed.origin) ?? createOrigin(parsed);
    origins.set(parsed.origin, origin);
    return { origin, parsed, start: requestStart(parsed) };
  };

  const attempt = (request: AttemptRequest, signal?: AbortSignal) =>
    new Promise<AttemptResult>(resolve => {
      const startedMs = monotonicMs();
      let settled = false;
      let sent = false;
      let status = 0;
      let retryAfterMs: number | undefined;
      let allowedOrigin: string | undefined;
      let keptBytes = 0;
      let kept: Buffer = NO_BODY;

      const settle = (reasonWithoutStatus: AttemptReason, truncated: boolean, isUnsent = false) => {
        settled = true;
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        const { outcome, reason } = status === 0 ? unanswered(reasonWithoutStatus) : judgeStatus(status);
        const latencyMs = Math.max(0, monotonicMs() - startedMs);
        const responseBody = kept.subarray(0, keptBytes);
        const result: Writable<AttemptResult> = { outcome, reason, latencyMs, responseBody, truncated };
        if (status !== 0) result.status = status;
        if (retryAfterMs !== undefined) result.retryAfterMs = retryAfterMs;
        if (allowedOrigin !== undefined) result.allowedOrigin = allowedOrigin;
        if (isUnsent) result.isUnsent = true;
        resolve(result);
      };

      let timer: NodeJS.Timeout | undefined;
      const onAbort = () => cutOff('aborted');
      const target = targetOf(request.url);
      if (typeof target === 'string') return settle(target, false);
      if (closed || signal?.aborted) return settle('aborted', false);

      const { method = 'POST' } = request;
      const start = method === 'POST' ? target.start : requestStart(target.parsed, method);
      if (request.headers === undefined) return settle('invalid_request', false);
      const head = requestHead(start, request.headers, request.body.length);

      const connection = pool.take(target.origin);
      const cutOff = (reason: AttemptReason) => {
        if (settled) return;
        const isAnswered = status !== 0;
        settle(reason, isAnswered);
        // Reset the connection, so that the request can't arrive after Sluice has repeated it. If there is a response,
        // the endpoint may still be reading the request.
        if (sent && !isAnswered) pool.reset(connection);
        else pool.drop(connection);
      };
      timer = setTimeout(() => cutOff(sent ? 'timeout' : 'connect_timeout'), request.timeoutMs ?? DEFAULT_TIMEOUT_MS);
      signal?.addEventListener('abort', onAbort, { once: true });

      const exchange: Exchange = {
        head,
        body: request.body,
        maySend: request.maySend ?? (() => true),
        onSent() {
          sent = true;
        },
        onUnsent() {
          pool.giveUnused(connection);
          // If the endpoint closes such connections before they are used, no attempt would ever be made.
          if (target.origin.lostUnused === 0) return settle('aborted', false, true);
          target.origin.lostUnused--;
          settle('connection_reset', false);
        },
        onHead(statusCode, retryAfter, allowed) {
          status = statusCode;
          if (method === 'OPTIONS') allowedOrigin = allowed;
          if (statusCode >= 300 && retryAfter !== undefined) retryAfterMs = parseRetryAfter(retryAfter, nowMs());
        },
        onBody(bytes) {
          if (settled) return;
          const room = RESPONSE_BODY_MAX - keptBytes;
          const part = bytes.length > room ? bytes.subarray(0, room) : bytes;
          // These parts are views of a read buffer with 64 KiB. Copy them so we don't keep the whole buffer in memory.
          kept = append(kept, keptBytes, keptBytes === 0 ? Buffer.from(part) : part, RESPONSE_BODY_MAX);
          keptBytes += part.length;
          if (bytes.length > room) cutOff('http_2xx');
        },
        onEnd() {
          if (settled) return;
          target.origin.lostUnused = 0;
          pool.give(connection);
          settle('http_2xx', false);
        },
        onFailure: cutOff,
      };
      connection.send(exchange);
    });

  return {
    attempt,
    async close() {
      closed = true;
      pool.close();
    },
  };
}
