import type { ReadyReason } from '../../api/condition-reasons.ts';
import type { DesiredCondition } from './conditions.ts';

/**
 * A Kubernetes Event to be recorded for an object and shown by `kubectl describe`. The Event must not contain any
 * personal data or secrets.
 */
export type EventNote = {
  readonly type: 'Normal' | 'Warning';
  /** Reason, as a single CamelCase word. */
  readonly reason: string;
  readonly message: string;
};

/**
 * The result of reconciling an object. The object was either reconciled, or it is waiting for something else. Failures
 * are thrown instead.
 */
export type Outcome<Status = object> = {
  /** Status fields specific to the kind. Any field omitted here will be removed from the object. */
  readonly status?: Omit<Status, 'conditions' | 'observedGeneration'>;
  /** Full list of conditions, including Ready. */
  readonly conditions: readonly DesiredCondition[];
  /** The delay before reconciling an unchanged object again, in milliseconds. */
  readonly requeueAfterMs?: number | undefined;
  /**
   * True if the object is waiting for an object referenced in its spec. The object is reconciled when the other one is
   * created, and counts as failed after five minutes.
   */
  readonly missingReference?: boolean | undefined;
  /** Events to record, provided that this outcome changed the status. */
  readonly events?: readonly EventNote[];
};

/**
 * The result of finalizing an object. We can either remove the finalizer, or need to keep it and finalize again after
 * `waitingMs`.
 */
export type Finalization<Status = object> =
  | 'done'
  | (Omit<Outcome<Status>, 'requeueAfterMs'> & { readonly waitingMs: number });

/**
 * Returns the outcome for an object that is waiting, with Ready set to Unknown for the given reason and Reconciling set
 * to True. It is up to the caller to ensure that the object will be reconciled again, via a watch or `requeueAfterMs`.
 */
export function waiting<Status = object>(
  reason: ReadyReason,
  message: string,
  more: Partial<Outcome<Status>> = {},
): Outcome<Status> {
  return {
    ...more,
    conditions: [
      { type: 'Ready', status: 'Unknown', reason, message },
      { type: 'Reconciling', status: 'True', reason: 'Progressing', message },
      ...(more.conditions ?? []),
    ],
  };
}

/**
 * Returns a {@link waiting} outcome for an object with a missing reference. The object counts as failed after five
 * minutes.
 */
export function waitingForReference<Status = object>(
  reason: ReadyReason,
  message: string,
  more: Partial<Outcome<Status>> = {},
): Outcome<Status> {
  return { ...waiting(reason, message, more), missingReference: true };
}

/**
 * An error used as the reason of the Ready condition. The controller shows the message of this error to users and
 * retries the object.
 */
export class ReconcileError extends Error {
  override readonly name: string = 'ReconcileError';
  readonly reason: string;

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/**
 * Thrown if Redis is not responding. Objects which have already been applied keep their status because the data in
 * Redis has not changed. We only report the outage on Workspaces because there may be 10,000 other objects.
 */
export class OutageError extends ReconcileError {
  override readonly name = 'OutageError';
}

/** Thrown if the API server forbids reading the Secrets of a workspace's namespace, or fails to list them. */
export class SecretsUnreadableError extends ReconcileError {
  override readonly name = 'SecretsUnreadableError';
}
