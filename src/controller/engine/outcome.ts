import type { DesiredCondition } from './conditions.ts';

/**
 * A Kubernetes Event that will be recorded for an object. It is shown by `kubectl describe`. It must not contain
 * personal data or secrets.
 */
export type EventNote = {
  readonly type: 'Normal' | 'Warning';
  /** The reason, as a single word in CamelCase. */
  readonly reason: string;
  readonly message: string;
};

/**
 * The result of reconciling an object. The object has either been reconciled or is waiting for something else. Failures
 * are thrown as errors.
 */
export type Outcome<Status = object> = {
  /** The status fields that are specific to the kind. If a field is omitted, it is removed from the object. */
  readonly status?: Omit<Status, 'conditions' | 'observedGeneration'>;
  /** The full list of conditions, including Ready. */
  readonly conditions: readonly DesiredCondition[];
  /** The time after which the object should be reconciled again if it does not change, in milliseconds. */
  readonly requeueAfterMs?: number | undefined;
  /**
   * Set to true if the object is waiting for another object that is named in the spec. After five minutes, the object
   * is considered failed. It is reconciled when the other object is created.
   */
  readonly missingReference?: boolean | undefined;
  /** The Events to record. They are only recorded if this outcome changed the status. */
  readonly events?: readonly EventNote[];
};

/**
 * The result of finalizing an object. Either the finalizer can be removed, or it is kept and the object is finalized
 * again after `waitingMs`.
 */
export type Finalization<Status = object> =
  | 'done'
  | (Omit<Outcome<Status>, 'requeueAfterMs'> & { readonly waitingMs: number });

/**
 * Returns the outcome for an object that is waiting. Ready is set to Unknown with the given reason, and Reconciling is
 * set to True. The caller must ensure that a watch or `requeueAfterMs` causes the object to be reconciled again.
 */
export function waiting<Status = object>(
  reason: string,
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
 * Returns a {@link waiting} outcome for an object that refers to a missing object. The object is considered failed
 * after five minutes.
 */
export function waitingForReference<Status = object>(
  reason: string,
  message: string,
  more: Partial<Outcome<Status>> = {},
): Outcome<Status> {
  return { ...waiting(reason, message, more), missingReference: true };
}

/** An error that sets the reason of the Ready condition. The message is shown to users and the object is retried. */
export class ReconcileError extends Error {
  override readonly name: string = 'ReconcileError';
  readonly reason: string;

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/**
 * This error is thrown if Redis does not respond. The data in Redis is unchanged, so objects that have been applied
 * keep their status. The outage is only reported on Workspaces, because there may be 10,000 other objects.
 */
export class OutageError extends ReconcileError {
  override readonly name = 'OutageError';
}
