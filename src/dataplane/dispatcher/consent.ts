import type { EndpointConfig } from '../../core/delivery/endpoint-config.ts';
import type { AttemptResult, EndpointClient } from './endpoint-client.ts';
import { endpointHeaders } from './headers.ts';
import { headerLines } from './http/request-head.ts';

/**
 * The time to wait before asking an endpoint again that has agreed. Also limits the time for which a name that moves is
 * trusted.
 */
export const AGREED_MS = 60 * 60_000;
/** The time to wait before asking an endpoint again that has not agreed. */
export const REFUSED_MS = 60_000;
/** The time to wait before asking an unreachable endpoint again. */
export const UNREACHED_MS = 5_000;
/** Endpoints that are remembered. Beyond that, all of them are asked again. */
const KEPT_AT_MOST = 20_000;
const NO_BODY = Buffer.alloc(0);

type AskedEndpoint = Pick<EndpointConfig, 'url' | 'timeoutMs' | 'headers'>;

/**
 * Returns the failed attempt to record if an endpoint must not be sent anything, or undefined if it has agreed. Never
 * rejects.
 */
export type AskConsent = (endpoint: AskedEndpoint) => Promise<AttemptResult | undefined>;

interface Known {
  readonly answer: Promise<AttemptResult | undefined>;
  /** Until when the response counts, on the monotonic clock. Infinity while the endpoint is being asked. */
  untilMs: number;
}

/**
 * Creates the function that asks endpoints whether they agree to receive events, using the validation handshake of
 * "HTTP 1.1 Web Hooks for Event Delivery" (CloudEvents, section 4): an OPTIONS request with `WebHook-Request-Origin`,
 * whose response must be 2xx, with this origin, or `*`, in `WebHook-Allowed-Origin`.
 *
 * Responses are remembered, and concurrent calls for an endpoint share a request. As a result, an endpoint gets at most
 * one request per minute until it agrees, however many events wait for it.
 *
 * @param origin DNS name of this installation
 */
export function createAskConsent(deps: {
  readonly attempt: EndpointClient['attempt'];
  readonly origin: string;
  readonly version: string;
  readonly monotonicMs: () => number;
}): AskConsent {
  const { attempt, origin, version, monotonicMs } = deps;
  const known = new Map<string, Known>();

  async function ask({ url, timeoutMs, headers }: AskedEndpoint): Promise<AttemptResult | undefined> {
    const result = await attempt({
      method: 'OPTIONS',
      url,
      timeoutMs,
      headers: headerLines([
        'user-agent',
        `sluice/${version}`,
        'webhook-request-origin',
        origin,
        ...[...endpointHeaders(headers)].flat(),
      ]),
      body: NO_BODY,
    });
    if (result.status === undefined) return result;
    if (result.outcome === 'delivered' && agrees(result.allowedOrigin, origin)) return undefined;
    // Without the status, which would look like that of a delivery.
    const { latencyMs, retryAfterMs } = result;
    const refused = { outcome: 'failed', reason: 'consent_missing', latencyMs, responseBody: NO_BODY } as const;
    return { ...refused, truncated: false, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  }

  return endpoint => {
    const key = JSON.stringify([endpoint.url, endpoint.headers]);
    const found = known.get(key);
    if (found !== undefined && monotonicMs() < found.untilMs) return found.answer;
    if (known.size >= KEPT_AT_MOST) known.clear();
    const entry: Known = { answer: ask(endpoint), untilMs: Number.POSITIVE_INFINITY };
    known.set(key, entry);
    void entry.answer.then(refused => {
      entry.untilMs = monotonicMs() + keptMs(refused);
    });
    return entry.answer;
  };
}

function keptMs(refused: AttemptResult | undefined): number {
  if (refused === undefined) return AGREED_MS;
  return refused.reason === 'consent_missing' ? REFUSED_MS : UNREACHED_MS;
}

/** Returns true if the response names the origin, or allows any. Names are compared without regard to case. */
function agrees(allowed: string | undefined, origin: string): boolean {
  return allowed === '*' || allowed?.toLowerCase() === origin.toLowerCase();
}
