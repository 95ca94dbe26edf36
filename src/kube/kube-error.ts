/**
 * A cause included in the Status returned by the API server. For example, a field which is not valid or is owned by
 * another manager.
 */
export type ErrorCause = { readonly reason: string; readonly field: string; readonly message: string };

/** The `status` if there was no response, for example because of a timeout or a closed connection. */
export const NO_ANSWER = 0;

/**
 * KubeError is thrown when a request to the API server fails. The `message` can be safely logged because it never
 * contains headers or object values. If an object is rejected, the server response may contain values. Only `detail`
 * and `causes` contain these values. Never log these two fields.
 */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  /** The HTTP status code. 0 if there was no response. */
  readonly status: number;
  /**
   * The reason returned by Kubernetes, such as `NotFound`, `Conflict`, or `Invalid`. Without a valid response, this is
   * one of `ConnectionFailed`, `Timeout`, or `MalformedAnswer`.
   */
  readonly reason: string;
  /** Value from the `Retry-After` header or the Status details. */
  readonly retryAfterSeconds: number | undefined;
  /** The field managers that caused a conflict in a server-side apply request. Empty for any other error. */
  readonly conflictManagers: readonly string[];
  declare readonly causes: readonly ErrorCause[];
  /**
   * Message returned by the server. The message may contain values of the object. Show it to the user, but never log
   * it.
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
    // Non-enumerable, because loggers that print all properties of an error would otherwise print object values.
    Object.defineProperty(this, 'causes', { value: causes });
    Object.defineProperty(this, 'detail', { value: detail });
  }
}

/**
 * Returns the manager names in a message such as `conflict with "kubectl" using v1: .spec.x`. See
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
 * Returns the error for a response with a `Status` as its body. A body in any other format, such as a load balancer's
 * HTML page, will not be included in the message.
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

/**
 * Returns true if the API server says that the object does not exist. The 404 of a load balancer, or of a path that the
 * API server does not know, has another body.
 */
export function isMissing(error: unknown): boolean {
  return isKubeError(error, 404) && error.reason === 'NotFound';
}

/** Returns true if the list or watch needs to be restarted because its resourceVersion is no longer available. */
export function isExpired(error: unknown): boolean {
  return isKubeError(error, 410) || (isKubeError(error) && (error.reason === 'Expired' || error.reason === 'Gone'));
}

/**
 * Returns the error for a cache that is out of date. The error is handled like a conflict because the watch will bring
 * the cache up to date.
 */
export function cacheBehind(what: string): KubeError {
  return new KubeError({ call: what, status: 409, reason: 'CacheBehind' });
}

/**
 * Returns true if the object has changed since it was read. In this case, the request can be retried after reading the
 * object again. Returns false for a conflict about a field owned by another manager.
 */
export function isStale(error: unknown): boolean {
  if (!isKubeError(error, 409) || error.conflictManagers.length > 0) return false;
  return error.reason === 'Conflict' || error.reason === 'CacheBehind';
}
