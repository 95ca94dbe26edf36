import { createSecureContext } from 'node:tls';
import type { Dispatcher } from 'undici';
import { createNetworkPolicy, judgeEndpoint } from '../../core/delivery/network.ts';
import { parseRetryAfter } from '../../core/delivery/retry-after.ts';
import { createConnectionPool, createOrigin, type Origin } from './connection-pool.ts';
import type { ResolveName } from './name-lookup.ts';
import { type AttemptReason, judgeError, judgeStatus, type Outcome, outcomeOf } from './outcome.ts';

/** The maximum number of bytes of a response's body that are read and stored. */
export const RESPONSE_BODY_MAX = 16 * 1024;

const RESPONSE_HEADERS_MAX = 16 * 1024;
/** The maximum number of bytes that are read from the connection for an answer. It includes the headers. */
const RESPONSE_WIRE_MAX = 128 * 1024;
const DEFAULT_TIMEOUT_MS = 15_000;
const TARGETS_MAX = 20_000;
const NO_BODY = Buffer.alloc(0);

export interface AttemptRequest {
  readonly url: string;
  /** The limit for the whole attempt, from the name lookup to the last byte of the answer. Defaults to 15 s. */
  readonly timeoutMs?: number;
  /** A flat list of names and values, as returned by a header builder. */
  readonly headers: string[];
  readonly body: Buffer;
}

export interface AttemptResult {
  readonly outcome: Outcome;
  readonly reason: AttemptReason;
  /** The status code. It is not set if no status line was received. */
  readonly status?: number;
  /** The delay that `Retry-After` requests in a failed answer. It is limited to 10 h. */
  readonly retryAfterMs?: number;
  readonly latencyMs: number;
  /** The first bytes of the body, with a maximum of 16 KiB. */
  readonly responseBody: Buffer;
  /** This is true if the body is incomplete because it was too long or the connection was closed. */
  readonly truncated: boolean;
}

export interface EndpointClient {
  /** Makes one HTTP request. It does not reject if the network or the endpoint fails. */
  readonly attempt: (request: AttemptRequest, signal?: AbortSignal) => Promise<AttemptResult>;
  /** Closes all connections. Current and later attempts end as `aborted`. */
  readonly close: () => Promise<void>;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const unanswered = (reason: AttemptReason): { outcome: Outcome; reason: AttemptReason } => ({
  outcome: outcomeOf(reason),
  reason,
});

type Target = { origin: Origin; path: string } | 'endpoint_refused' | 'address_refused';

/**
 * Creates a client that sends attempts to many endpoints. The caller limits the number of concurrent attempts. The
 * status line determines the result. If the connection fails after the status line, the status is still used, so that a
 * 2xx answer with an endless body is not sent twice.
 *
 * @param allowedNetworks are the CIDR networks that endpoints may use in addition to public addresses
 * @param connectTimeoutMs is the limit for name lookup, TCP and TLS together, and defaults to 5 s
 * @param ca are PEM certificates that replace the trusted certificates of the system
 * @param nowMs is the wall clock for the dates in `Retry-After`
 * @param monotonicMs is the clock for `latencyMs`
 */
export function createEndpointClient(options: {
  allowedNetworks: readonly string[];
  connectTimeoutMs?: number;
  idleTimeoutMs?: number;
  ca?: string;
  resolveName?: ResolveName;
  nowMs?: () => number;
  monotonicMs?: () => number;
}): EndpointClient {
  const policy = createNetworkPolicy(options.allowedNetworks);
  const nowMs = options.nowMs ?? Date.now;
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const pool = createConnectionPool({
    policy,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    idleTimeoutMs: options.idleTimeoutMs ?? 4000,
    maxHeaderBytes: RESPONSE_HEADERS_MAX,
    secureContext: createSecureContext(options.ca === undefined ? {} : { ca: options.ca }),
    ...(options.resolveName === undefined ? {} : { resolveName: options.resolveName }),
  });

  let closed = false;

  // Cache the targets because parsing and checking a URL costs more than sending a request. There are few endpoints and
  // they are used often.
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
    return { origin, path: parsed.pathname + parsed.search };
  };

  const attempt = (request: AttemptRequest, signal?: AbortSignal) =>
    new Promise<AttemptResult>(resolve => {
      const startedMs = monotonicMs();
      let settled = false;
      let sent = false;
      let status = 0;
      let retryAfterMs: number | undefined;
      let keptBytes = 0;
      const kept: Buffer[] = [];

      const settle = (reasonWithoutStatus: AttemptReason, truncated: boolean) => {
        settled = true;
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        const { outcome, reason } = status === 0 ? unanswered(reasonWithoutStatus) : judgeStatus(status);
        const latencyMs = Math.max(0, monotonicMs() - startedMs);
        const responseBody = kept.length > 1 ? Buffer.concat(kept) : (kept[0] ?? NO_BODY);
        const result: Writable<AttemptResult> = { outcome, reason, latencyMs, responseBody, truncated };
        if (status !== 0) result.status = status;
        if (retryAfterMs !== undefined) result.retryAfterMs = retryAfterMs;
        resolve(result);
      };

      let timer: NodeJS.Timeout | undefined;
      const onAbort = () => cutOff('aborted');
      const onOverrun = () => cutOff('headers_too_large');
      const target = targetOf(request.url);
      if (typeof target === 'string') return settle(target, false);
      if (closed || signal?.aborted) return settle('aborted', false);

      const connection = pool.take(target.origin);
      const cutOff = (reason: AttemptReason) => {
        if (settled) return;
        settle(reason, status !== 0);
        pool.drop(connection);
      };
      timer = setTimeout(() => cutOff(sent ? 'timeout' : 'connect_timeout'), request.timeoutMs ?? DEFAULT_TIMEOUT_MS);
      signal?.addEventListener('abort', onAbort, { once: true });

      const handler: Dispatcher.DispatchHandler = {
        onRequestStart() {
          sent = true;
          connection.readUntil = (connection.socket?.bytesRead ?? 0) + RESPONSE_WIRE_MAX;
          connection.onOverrun = onOverrun;
        },
        onResponseStart(_controller, statusCode, headers) {
          // A status of 1xx other than 101 is informational, and the answer is still to come (RFC 9110, 15.2).
          if (settled || statusCode < 200) return;
          status = statusCode;
          const retryAfter = statusCode < 300 ? undefined : headers['retry-after'];
          if (retryAfter !== undefined) {
            retryAfterMs = parseRetryAfter(typeof retryAfter === 'string' ? retryAfter : retryAfter[0], nowMs());
          }
        },
        onResponseData(_controller, chunk) {
          if (settled) return;
          const room = RESPONSE_BODY_MAX - keptBytes;
          const part = chunk.length > room ? chunk.subarray(0, room) : chunk;
          // Copy the chunk because it is a view of a 64 KiB read buffer that would otherwise stay in memory.
          if (part.length > 0) kept.push(Buffer.from(part));
          keptBytes += part.length;
          if (chunk.length > room) cutOff('http_2xx');
        },
        onResponseEnd() {
          if (settled) return;
          pool.give(connection);
          settle('http_2xx', false);
        },
        onResponseError(_controller, error) {
          cutOff(judgeError(error));
        },
      };
      connection.client.dispatch(
        { path: target.path, method: 'POST', headers: request.headers, body: request.body },
        handler,
      );
    });

  return {
    attempt,
    close() {
      closed = true;
      return pool.close();
    },
  };
}
