import type { DesiredCondition } from './conditions.ts';

/** A Kubernetes Event to record; `kubectl describe` shows it. Must not hold personal data or secrets. */
export type EventNote = {
  readonly type: 'Normal' | 'Warning';
  /** One CamelCase word. */
  readonly reason: string;
  readonly message: string;
};

/**
 * Result of reconciling an object: done, or waiting for something (which is not a failure). A failure is thrown.
 */
export type Outcome<Status = object> = {
  /** All of the kind's own status fields. Fields that are left out are removed from the object. */
  readonly status?: Omit<Status, 'conditions' | 'observedGeneration'>;
  /** All conditions, including Ready. */
  readonly conditions: readonly DesiredCondition[];
  /** When to reconcile again without a change, ms. */
  readonly requeueAfterMs?: number | undefined;
  /** Waits for an object that the spec names. Counts as failed after five minutes, and resumes when it appears. */
  readonly missingReference?: boolean | undefined;
  /** Recorded only if this outcome changed the status. */
  readonly events?: readonly EventNote[];
};

/** Result of finalizing: the finalizer is removed, or it stays and finalizing is retried after `waitingMs`. */
export type Finalization<Status = object> =
  | 'done'
  | (Omit<Outcome<Status>, 'requeueAfterMs'> & { readonly waitingMs: number });

/**
 * Returns the outcome of waiting: `Ready=Unknown` with the reason, `Reconciling=True`. A watch or `requeueAfterMs` must
 * end the wait.
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

/** Returns the outcome of {@link waiting} for an object that the spec names; failed after five minutes. */
export function waitingForReference<Status = object>(
  reason: string,
  message: string,
  more: Partial<Outcome<Status>> = {},
): Outcome<Status> {
  return { ...waiting(reason, message, more), missingReference: true };
}

/** A failure with a reason for `Ready`, which is retried. Its message is shown to users. */
export class ReconcileError extends Error {
  override readonly name: string = 'ReconcileError';
  readonly reason: string;

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/**
 * Redis does not answer. Its data is unchanged, so applied objects keep their status. Workspaces report the outage, not
 * each of 10,000 objects.
 */
export class OutageError extends ReconcileError {
  override readonly name = 'OutageError';
}
