import { errors } from 'undici';
import { ConnectError, type ConnectFailure } from './connector.ts';

/** What becomes of the event: done; to be retried; or not to be sent to this endpoint again (410). */
export type Outcome = 'delivered' | 'failed' | 'disabled';

/** Why an attempt ended as it did: one stable word, few enough for a metric's label. */
export type AttemptReason =
  | 'http_2xx'
  | 'redirect'
  | 'gone'
  | 'http_4xx'
  | 'http_5xx'
  | ConnectFailure
  | 'endpoint_refused'
  | 'connection_reset'
  | 'timeout'
  | 'aborted'
  | 'headers_too_large'
  | 'invalid_response'
  | 'invalid_request'
  | 'network_error';

/**
 * What a status says: 2xx is success, 410 disables the endpoint (both Standard Webhooks), 3xx is a failure and is
 * never followed, since the redirect's target was judged by nobody.
 */
export function judgeStatus(status: number): { outcome: Outcome; reason: AttemptReason } {
  if (status >= 200 && status < 300) return { outcome: 'delivered', reason: 'http_2xx' };
  if (status === 410) return { outcome: 'disabled', reason: 'gone' };
  if (status >= 300 && status < 400) return { outcome: 'failed', reason: 'redirect' };
  if (status >= 400 && status < 500) return { outcome: 'failed', reason: 'http_4xx' };
  if (status >= 500 && status < 600) return { outcome: 'failed', reason: 'http_5xx' };
  return { outcome: 'failed', reason: 'invalid_response' };
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
