/** One cause in the API server's Status, e.g. a field that is invalid or owned by another manager. */
export type ErrorCause = { readonly reason: string; readonly field: string; readonly message: string };

/** `status` of an error without an answer: no connection, a timeout, or a broken stream. */
export const NO_ANSWER = 0;

/**
 * A failed call to the API server. `message` is safe to log: it has no headers and no values of the object. The server
 * repeats values when it refuses an object; they are in `detail` and `causes`, which loggers skip.
 */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  /** The HTTP status, or 0 without an answer. */
  readonly status: number;
  /** Kubernetes' reason (`NotFound`, `Conflict`, `Invalid`, …), or `ConnectionFailed`, `Timeout`, `MalformedAnswer`. */
  readonly reason: string;
  /** From `Retry-After`, or from the Status's details. */
  readonly retryAfterSeconds: number | undefined;
  /** Field managers that own fields of a server-side apply; empty for other errors. */
  readonly conflictManagers: readonly string[];
  declare readonly causes: readonly ErrorCause[];
  /** The server's message. May repeat values of the object: show it to the writer, do not log it. */
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

/** Parses manager names from `conflict with "kubectl" using v1: .spec.x` (apiserver, managedfields/conflict.go). */
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
 * Returns the error for an answer with a `Status` body. Leaves any other body, such as a load balancer's page, out of
 * the message.
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

/** Returns whether the list or watch must start over because its resourceVersion has been compacted. */
export function isExpired(error: unknown): boolean {
  return isKubeError(error, 410) || (isKubeError(error) && (error.reason === 'Expired' || error.reason === 'Gone'));
}

/** Returns the error for a cache that is behind. Handled as a conflict, because the watch will catch up. */
export function cacheBehind(what: string): KubeError {
  return new KubeError({ call: what, status: 409, reason: 'CacheBehind' });
}

/** Returns whether the object has changed since it was read, so a new read helps. False for another manager's field. */
export function isStale(error: unknown): boolean {
  if (!isKubeError(error, 409) || error.conflictManagers.length > 0) return false;
  return error.reason === 'Conflict' || error.reason === 'CacheBehind';
}
