/**
 * A cause in the Status that is returned by the API server, for example a field that is invalid or owned by another
 * manager.
 */
export type ErrorCause = { readonly reason: string; readonly field: string; readonly message: string };

/** The `status` of an error if there was no response, for example because of a timeout or a closed connection. */
export const NO_ANSWER = 0;

/**
 * KubeError is the error that is thrown if a request to the API server fails. The `message` can be logged because it
 * does not contain headers or values of the object. When the server rejects an object, its response may contain values.
 * These are only included in `detail` and `causes`, which are not logged.
 */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  /** The HTTP status code, or 0 if there was no response. */
  readonly status: number;
  /**
   * The reason that was returned by Kubernetes, for example `NotFound`, `Conflict` or `Invalid`. If there was no valid
   * response, this is `ConnectionFailed`, `Timeout` or `MalformedAnswer`.
   */
  readonly reason: string;
  /** The value of the `Retry-After` header or of the details in the Status. */
  readonly retryAfterSeconds: number | undefined;
  /** The field managers that caused a conflict in a server-side apply request. The list is empty for other errors. */
  readonly conflictManagers: readonly string[];
  declare readonly causes: readonly ErrorCause[];
  /**
   * The message of the server. It may contain values of the object, so it can be shown to the user but must not be
   * logged.
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
    // These properties are not enumerable, so that values of objects are not printed by loggers that print all
    // properties of an error.
    Object.defineProperty(this, 'causes', { value: causes });
    Object.defineProperty(this, 'detail', { value: detail });
  }
}

/**
 * Returns the names of the managers from a message like `conflict with "kubectl" using v1: .spec.x`. The format is
 * defined in managedfields/conflict.go of the API server.
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
 * Returns the error for a response with a `Status` body. If the body has a different format, for example an HTML page
 * of a load balancer, it is not included in the message.
 *
 * @param call the method and the path, which are included in the message
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
 * Returns an error for a cache that is not up to date. It is handled like a conflict, because the watch will update the
 * cache.
 */
export function cacheBehind(what: string): KubeError {
  return new KubeError({ call: what, status: 409, reason: 'CacheBehind' });
}

/**
 * Returns true if the object has changed since it was read, so that the request can be retried after it is read again.
 * Returns false if the conflict was caused by a field of another manager.
 */
export function isStale(error: unknown): boolean {
  if (!isKubeError(error, 409) || error.conflictManagers.length > 0) return false;
  return error.reason === 'Conflict' || error.reason === 'CacheBehind';
}
