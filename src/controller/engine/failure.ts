import { isKubeError, NO_ANSWER } from '../../kube/kube-error.ts';
import { type Condition, type DesiredCondition, findCondition } from './conditions.ts';
import { type EventNote, OutageError, ReconcileError } from './outcome.ts';

/**
 * Number of consecutive failures before a Ready object reports them, corresponding to about a second of retries. We
 * don't want a short Redis outage to cause two writes for each of 100,000 objects.
 */
export const FAILURES_BEFORE_UNREADY = 8;

/**
 * Number of consecutive failures before an object that isn't Ready reports that the API server or Redis doesn't answer.
 * The first retries follow within milliseconds, and a report would only add another write to an overloaded server.
 */
export const FAILURES_BEFORE_REPORT = 3;

/** Conditions and Event to write after a failure. */
type FailureReport = { readonly conditions: DesiredCondition[]; readonly event: EventNote };

/**
 * Returns the conditions for an object that failed to reconcile. Ready becomes False, and Reconciling becomes True
 * because the object will be retried. All other conditions keep their observed generation. Returns undefined for the
 * first few failures of a Ready object, as well as for an {@link OutageError} if the current generation has been
 * applied, and for the first few of any object if the API server or Redis doesn't answer.
 *
 * @param failures this object's consecutive failures before this one
 */
export function reportFailure(
  error: unknown,
  object: { readonly generation: number; readonly conditions: readonly Condition[] | undefined },
  failures: number,
): FailureReport | undefined {
  if (error instanceof OutageError && isApplied(object)) return undefined;
  if (isTransient(error) && failures + 1 < FAILURES_BEFORE_REPORT) return undefined;
  const ready = findCondition(object.conditions, 'Ready');
  const wasReady = ready?.status === 'True' && ready.observedGeneration === object.generation;
  if (wasReady && failures + 1 < FAILURES_BEFORE_UNREADY) return undefined;

  const reason = error instanceof ReconcileError ? error.reason : 'ReconcileFailed';
  const message = shownMessage(error);
  const kept = (object.conditions ?? []).filter(({ type }) => !['Ready', 'Reconciling', 'Stalled'].includes(type));
  return {
    conditions: [
      { type: 'Ready', status: 'False', reason, message },
      { type: 'Reconciling', status: 'True', reason: 'Retrying', message },
      ...kept,
    ],
    event: { type: 'Warning', reason, message },
  };
}

/** Returns true if a retry is likely to succeed, i.e. after no response or an overload error. */
function isTransient(error: unknown): boolean {
  if (error instanceof OutageError) return true;
  return isKubeError(error) && (error.status === NO_ANSWER || error.status === 429 || error.status >= 500);
}

/**
 * Returns true if the object's current generation has been applied, which isn't the case if it failed or is waiting for
 * a pause to end.
 */
function isApplied({ generation, conditions }: Parameters<typeof reportFailure>[1]): boolean {
  const ready = findCondition(conditions, 'Ready');
  const retrying = findCondition(conditions, 'Reconciling')?.reason === 'Retrying';
  return ready?.observedGeneration === generation && ready.reason !== 'WorkspacePaused' && !retrying;
}

/**
 * Returns the message of an error intended for users. Other messages are hidden because they could contain addresses or
 * values.
 */
function shownMessage(error: unknown): string {
  if (error instanceof ReconcileError || isKubeError(error)) return error.message;
  return 'an unexpected error occurred; see the log of the controller';
}
