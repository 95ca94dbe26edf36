/** A cause from the Status returned by the API server, such as a field that is invalid or owned by another manager. */
export type ErrorCause = { readonly reason: string; readonly field: string; readonly message: string };

/** The `status` of an error without a response, e.g. because of a timeout or a closed connection. */
export const NO_ANSWER = 0;

/**
 * KubeError is thrown when a request to the API server fails. Its `message` is safe to log, since it doesn't contain
 * any headers or values of the object. When rejecting an object, the server's response may include values; these are
 * limited to `detail` and `causes`, which are never logged.
 */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  /** HTTP status code, or 0 without a response. */
  readonly status: number;
  /**
   * Reason returned by Kubernetes, such as `NotFound`, `Conflict` or `Invalid`. Without a valid response, this will be
   * one of `ConnectionFailed`, `Timeout` or `MalformedAnswer`.
   */
  readonly reason: string;
  /** Value from the `Retry-After` header or the Status details. */
  readonly retryAfterSeconds: number | undefined;
  /** Field managers that caused a conflict in a server-side apply request. Empty for any other error. */
  readonly conflictManagers: readonly string[];
  declare readonly causes: readonly ErrorCause[];
  /**
   * Message returned by the server. It may contain values of the object, so showing it to the user is fine but it must
   * not be logged.
   */
  declare readonly detail: string;

  constructor(facts: {
    readonly call: string;
    readonly status: number;
    readonly reason: string;
    readonly detail?: string;
    readonly causes?: readonly ErrorCause[];
    readonly retryAfterSeconds?: number | undefined;
    readonly cause?: unknown;
  }) {
    const { call, status, reason, detail = '', causes = [] } = facts;
    const shown = reason === 'Invalid' || detail === '' ? '' : `: ${detail.slice(0, 500)}`;
    super(`${call}: ${status === NO_ANSWER ? '' : `${status} `}${reason}${shown}`, { cause: facts.cause });
    this.status = status;
    this.reason = reason;
    this.retryAfterSeconds = facts.retryAfterSeconds;
    this.conflictManagers = conflictManagers(causes);
    // Non-enumerable, because loggers that print all properties of an error would otherwise print values of objects.
    Object.defineProperty(this, 'causes', { value: causes });
    Object.defineProperty(this, 'detail', { value: detail });
  }
}

/**
 * Returns the manager names from a message such as `conflict with "kubectl" using v1: .spec.x`. See
 * managedfields/conflict.go in the API server for the format.
 */
function conflictManagers(causes: readonly ErrorCause[]): string[] {
  const names = causes
    .filter(({ reason }) => reason === 'FieldManagerConflict')
    .flatMap(({ message }) => /^conflict with "([^"]*)"/.exec(message)?.[1] ?? []);
  return [...new Set(names)];
}

type StatusBody = {
  readonly kind?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly details?: { readonly causes?: readonly Partial<ErrorCause>[]; readonly retryAfterSeconds?: number };
};

/**
 * Returns the error for a response with a `Status` body. A body in any other format, such as a load balancer's HTML
 * page, will not be included in the message.
 *
 * @param call method and path, for use in the message
 */
export function errorFromStatus(call: string, status: number, body: unknown, retryAfter?: string): KubeError {
  const parsed: StatusBody =
    typeof body === 'object' && body !== null && (body as StatusBody).kind === 'Status' ? body : {};
  const header = Number(retryAfter);
  const causes = parsed.details?.causes?.map(({ reason = '', field = '', message = '' }) => ({
    reason,
    field,
    message,
  }));
  return new KubeError({
    call,
    status,
    reason: typeof parsed.reason === 'string' && parsed.reason !== '' ? parsed.reason : `HTTP${status}`,
    detail: typeof parsed.message === 'string' ? parsed.message : '',
    ...(causes === undefined ? {} : { causes }),
    retryAfterSeconds: retryAfter !== undefined && Number.isFinite(header) ? header : parsed.details?.retryAfterSeconds,
  });
}

export function isKubeError(error: unknown, status?: number): error is KubeError {
  return error instanceof KubeError && (status === undefined || error.status === status);
}

/** Returns true if the list or watch must be restarted because its resourceVersion has been compacted. */
export function isExpired(error: unknown): boolean {
  return isKubeError(error, 410) || (isKubeError(error) && (error.reason === 'Expired' || error.reason === 'Gone'));
}

/**
 * Returns an error for an outdated cache. It is handled like a conflict, as the watch will bring the cache up to date.
 */
export function cacheBehind(what: string): KubeError {
  return new KubeError({ call: what, status: 409, reason: 'CacheBehind' });
}

/**
 * Returns true if the object has changed since it was read, so the request can be retried after reading it again. A
 * conflict over a field owned by another manager returns false.
 */
export function isStale(error: unknown): boolean {
  if (!isKubeError(error, 409) || error.conflictManagers.length > 0) return false;
  return error.reason === 'Conflict' || error.reason === 'CacheBehind';
}
