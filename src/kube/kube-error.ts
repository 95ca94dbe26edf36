/** One cause of the API server's Status, e.g. a field that is invalid or owned by another manager. */
export type ErrorCause = { readonly reason: string; readonly field: string; readonly message: string };

/** `status` of an error that did not come from the API server: no connection, no answer in time, broken stream. */
export const NO_ANSWER = 0;

/**
 * A call to the API server that failed. `message` is safe to log: it holds no headers, and no values of the object
 * (which the server repeats when it refuses one; those are in `detail` and `causes`, which loggers skip).
 */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  /** The HTTP status, or 0 when there was no answer. */
  readonly status: number;
  /** Kubernetes' reason (`NotFound`, `Conflict`, `Invalid`, …), or `ConnectionFailed`, `Timeout`, `MalformedAnswer`. */
  readonly reason: string;
  /** From `Retry-After`, or from the Status's details. */
  readonly retryAfterSeconds: number | undefined;
  /** Field managers that own what a server-side apply wanted to change; empty for other errors. */
  readonly conflictManagers: readonly string[];
  declare readonly causes: readonly ErrorCause[];
  /** The server's own message. May repeat values of the object: for answers to its writer, not for logs. */
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
    // Not enumerable, so that a logger that prints an error's properties does not print values of objects.
    Object.defineProperty(this, 'causes', { value: causes });
    Object.defineProperty(this, 'detail', { value: detail });
  }
}

/** The managers' names out of `conflict with "kubectl" using v1: .spec.x` (apiserver, managedfields/conflict.go). */
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
 * The error that an answer with a `Status` body means. A body of something else, such as a load balancer's page, is
 * left out of the message.
 *
 * @param call method and path, for the message
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

/** The list or watch must begin anew: its resourceVersion has been compacted away. */
export function isExpired(error: unknown): boolean {
  return isKubeError(error, 410) || (isKubeError(error) && (error.reason === 'Expired' || error.reason === 'Gone'));
}

/** What is needed is not in the cache yet: handled as a conflict, because the watch will bring it and nothing failed. */
export function cacheBehind(what: string): KubeError {
  return new KubeError({ call: what, status: 409, reason: 'CacheBehind' });
}

/** The object has changed since it was read: reading it again is all that is needed. Not so when a field is another manager's. */
export function isStale(error: unknown): boolean {
  if (!isKubeError(error, 409) || error.conflictManagers.length > 0) return false;
  return error.reason === 'Conflict' || error.reason === 'CacheBehind';
}
