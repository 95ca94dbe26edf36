import type { AttemptOutcome } from '../../api/delivery-status.ts';
import type { ExchangeFailure } from './http/connection.ts';

/**
 * The consequence of an attempt. Events are either delivered, retried, or (after a 410) no longer sent to this
 * endpoint.
 */
export type Outcome = 'delivered' | 'failed' | 'disabled';

/**
 * The reasons for the result of an attempt, including their descriptions. The set is stable and small enough for use as
 * a metric label. See docs/deliveries.md, where the same descriptions are listed.
 */
export const ATTEMPT_REASONS = {
  http_2xx: 'The endpoint returned a status from 200 to 299.',
  gone: 'The endpoint returned status 410.',
  redirect:
    'The endpoint returned a status from 300 to 399. Sluice does not follow redirects because it has not checked the target address.',
  http_4xx: 'The endpoint returned a status from 400 to 499, except 410.',
  http_5xx: 'The endpoint returned a status from 500 to 599.',
  invalid_response: 'The response is not valid HTTP/1.1, or its status is 101, below 100, or above 599.',
  headers_too_large:
    'The response headers are larger than 16 KiB, or they do not end within the first 128 KiB or 8,192 parts of the response.',
  timeout: 'The endpoint did not send a status line within its timeout. The default timeout is 15 seconds.',
  connection_reset: 'The connection was closed before the status line and the headers were complete.',
  endpoint_refused:
    'The URL is not allowed. The URL does not use https, uses http with a host name, or has a port that is not in SLUICE_ALLOWED_PORTS.',
  address_refused:
    "The endpoint's address is neither public nor in an allowed network, or it is in a refused network. If the name has several addresses, none of them is allowed.",
  dns_failed: 'The host name has no address, or its name servers did not respond.',
  connection_refused: 'The endpoint refused the connection because the port is not open.',
  unreachable: 'There is no network route to the address.',
  connect_timeout: 'The connection was not established within 5 seconds. This includes DNS, TCP and TLS.',
  tls_error:
    'The TLS handshake failed. The certificate may have expired, may not match the host name, or may have an unknown issuer. The handshake also fails if the endpoint does not support HTTP/1.1, requires a client certificate, or sends too many session tickets or key updates.',
  connect_failed: 'The connection failed for another reason.',
  invalid_request: 'Sluice could not create the request because a header contains characters that HTTP does not allow.',
  aborted: 'The dispatcher stopped during the attempt.',
  network_error: 'Another network error occurred.',
  consent_missing: 'The endpoint has not agreed to receive events, so the event was not sent.',
} as const satisfies Readonly<Record<ExchangeFailure, string>> & Readonly<Record<string, string>>;

export type AttemptReason = keyof typeof ATTEMPT_REASONS;

/**
 * Maps a reason to the outcome shown in the Subscription status. If the reason does not depend on the endpoint, this is
 * undefined.
 */
export const SHOWN_OUTCOMES: Readonly<Record<AttemptReason, AttemptOutcome | undefined>> = {
  http_2xx: 'Succeeded',
  gone: 'HttpError',
  redirect: 'HttpError',
  http_4xx: 'HttpError',
  http_5xx: 'HttpError',
  invalid_response: 'InvalidResponse',
  headers_too_large: 'InvalidResponse',
  timeout: 'Timeout',
  connection_reset: 'ConnectionFailed',
  endpoint_refused: 'EndpointRefused',
  address_refused: 'EndpointRefused',
  dns_failed: 'DnsFailed',
  connection_refused: 'ConnectionFailed',
  unreachable: 'ConnectionFailed',
  connect_timeout: 'ConnectionFailed',
  tls_error: 'TlsFailed',
  connect_failed: 'ConnectionFailed',
  invalid_request: 'InvalidRequest',
  aborted: undefined,
  network_error: 'ConnectionFailed',
  consent_missing: 'ConsentMissing',
};

/** Returns the outcome for an attempt with the given reason. */
export function outcomeOf(reason: AttemptReason): Outcome {
  return reason === 'http_2xx' ? 'delivered' : reason === 'gone' ? 'disabled' : 'failed';
}

/**
 * Returns what should happen for a status code. As specified by Standard Webhooks, any 2xx is a success and a 410
 * disables the endpoint. A 3xx counts as a failure: we don't follow redirects because the target has not been checked.
 */
export function judgeStatus(status: number): { outcome: Outcome; reason: AttemptReason } {
  const reason = reasonOfStatus(status);
  return { outcome: outcomeOf(reason), reason };
}

function reasonOfStatus(status: number): AttemptReason {
  if (status >= 200 && status < 300) return 'http_2xx';
  if (status === 410) return 'gone';
  if (status >= 300 && status < 400) return 'redirect';
  if (status >= 400 && status < 500) return 'http_4xx';
  if (status >= 500 && status < 600) return 'http_5xx';
  return 'invalid_response';
}
