import { errors } from 'undici';
import type { AttemptOutcome } from '../../api/delivery-status.ts';
import { ConnectError, type ConnectFailure } from './connector.ts';

/** What becomes of the event: done; to be retried; or not to be sent to this endpoint again (410). */
export type Outcome = 'delivered' | 'failed' | 'disabled';

/**
 * Why an attempt ended as it did, with the meaning: stable words, few enough for a metric's label. The page for partners,
 * docs/deliveries.md, lists them as they stand here.
 */
export const ATTEMPT_REASONS = {
  http_2xx: 'A status from 200 to 299, whatever follows it.',
  gone: 'Status 410.',
  redirect: 'A status from 300 to 399. It is never followed: its target was judged by nobody.',
  http_4xx: 'A status from 400 to 499, but 410.',
  http_5xx: 'A status from 500 to 599.',
  invalid_response: 'What came is no HTTP/1.1 answer, is 100 or 101, or has a status from 600 on.',
  headers_too_large: "The answer's headers are longer than 16 KiB, or do not end within 128 KiB of whatever else.",
  timeout: 'No status line came until the timeout of the endpoint, 15 seconds unless it says otherwise.',
  connection_reset: 'The connection ended before a status line and its headers were complete.',
  endpoint_refused: 'The URL may not be called: no https, or http towards a name.',
  address_refused:
    'The address, or every address that the name has, is not public and not in a network that the operator allows.',
  dns_failed: 'The name has no address, or its name servers do not answer.',
  connection_refused: 'Nobody listens at the port.',
  unreachable: 'There is no route to the address.',
  connect_timeout: 'There was no connection within 5 seconds: name, TCP and TLS together.',
  tls_error:
    'TLS failed: the certificate is out of date, for another name or of an unknown issuer, or HTTP/1.1 is not spoken.',
  connect_failed: 'The connection failed in another way.',
  invalid_request: 'The request could not be made: a header that HTTP cannot carry.',
  aborted: 'The dispatcher stopped meanwhile.',
  network_error: 'Something else failed on the way.',
} as const satisfies Readonly<Record<ConnectFailure, string>> & Readonly<Record<string, string>>;

export type AttemptReason = keyof typeof ATTEMPT_REASONS;

/** What the status of a Subscription shows of an attempt; undefined: it says nothing of the endpoint. */
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
};

/** What becomes of an attempt with the reason. */
export function outcomeOf(reason: AttemptReason): Outcome {
  return reason === 'http_2xx' ? 'delivered' : reason === 'gone' ? 'disabled' : 'failed';
}

/**
 * What a status says: 2xx is success, 410 disables the endpoint (both Standard Webhooks), 3xx is a failure and is
 * never followed, since the redirect's target was judged by nobody.
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

const REASON_BY_CODE: Readonly<Record<string, AttemptReason>> = {
  ECONNRESET: 'connection_reset',
  EPIPE: 'connection_reset',
  ETIMEDOUT: 'connection_reset',
  UND_ERR_HEADERS_OVERFLOW: 'headers_too_large',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'invalid_response',
  UND_ERR_DESTROYED: 'aborted',
  UND_ERR_CLOSED: 'aborted',
  UND_ERR_INVALID_ARG: 'invalid_request',
  UND_ERR_NOT_SUPPORTED: 'invalid_request',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'invalid_request',
};

/** undici tells these two from a closed connection by their text alone. */
const ODD_RESPONSES = new Set(['bad response', 'bad upgrade']);

/** The reason behind an error of the HTTP client. */
export function judgeError(error: unknown): AttemptReason {
  if (error instanceof ConnectError) return error.reason;
  if (error instanceof errors.HTTPParserError) return 'invalid_response';
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return 'network_error';
  const { code } = error;
  if (code === 'UND_ERR_SOCKET') return ODD_RESPONSES.has(error.message) ? 'invalid_response' : 'connection_reset';
  return REASON_BY_CODE[code] ?? 'network_error';
}
