import type { DesiredCondition } from './conditions.ts';

/** Something to tell users about, beside the status: `kubectl describe` shows it. No personal data, no secrets. */
export type EventNote = {
  readonly type: 'Normal' | 'Warning';
  /** One CamelCase word. */
  readonly reason: string;
  readonly message: string;
};

/**
 * What reconciling an object came to: done, or waiting for something (which is no failure). The third outcome, a
 * failure, is thrown.
 */
export type Outcome<Status = object> = {
  /** All of the kind's own status fields; one that is left out is removed from the object. */
  readonly status?: Omit<Status, 'conditions' | 'observedGeneration'>;
  /** All conditions, Ready among them. */
  readonly conditions: readonly DesiredCondition[];
  /** Reconcile again after so long even when nothing changes. */
  readonly requeueAfterMs?: number | undefined;
  /** It waits for an object that its spec names: after five minutes that counts as failed, and heals when it appears. */
  readonly missingReference?: boolean | undefined;
  /** Recorded when this outcome changed the status, so that a converged object makes none. */
  readonly events?: readonly EventNote[];
};

/** What finalizing came to: the finalizer goes, or it stays and is tried again after `waitingMs`. */
export type Finalization<Status = object> =
  | 'done'
  | (Omit<Outcome<Status>, 'requeueAfterMs'> & { readonly waitingMs: number });

/**
 * Waiting for what does not exist yet: `Ready=Unknown` with the reason, `Reconciling=True`. It must heal by a watch,
 * or by `requeueAfterMs`.
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

/** Waiting for an object that the spec names, as {@link waiting}; after five minutes it counts as failed. */
export function waitingForReference<Status = object>(
  reason: string,
  message: string,
  more: Partial<Outcome<Status>> = {},
): Outcome<Status> {
  return { ...waiting(reason, message, more), missingReference: true };
}

/** A failure with a reason for `Ready`; tried again. Its message is shown to users. */
export class ReconcileError extends Error {
  override readonly name: string = 'ReconcileError';
  readonly reason: string;

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/**
 * What the objects are applied to does not answer: what stands there is as it was, so an object whose generation is
 * applied goes on saying so. The outage is reported in one place instead of on each of 10,000 objects.
 */
export class OutageError extends ReconcileError {
  override readonly name = 'OutageError';
}

/** A failure that trying again cannot mend, only an edit of the object: sets Stalled. Its message is shown to users. */
export class TerminalError extends ReconcileError {
  override readonly name = 'TerminalError';
}
