import { isKubeError, NO_ANSWER } from '../../kube/kube-error.ts';
import { type Condition, type DesiredCondition, findCondition } from './conditions.ts';
import { type EventNote, OutageError, ReconcileError } from './outcome.ts';

/**
 * The number of consecutive failures before they are reported for an object that is Ready. The retries take about a
 * second. We don't want a short Redis outage to cause two writes for each of 100,000 objects.
 */
export const FAILURES_BEFORE_UNREADY = 8;

/**
 * The number of consecutive failures after which an object that is not Ready will report that the API server or Redis
 * is not responding. The first retries happen within milliseconds. Reporting this would only cause another write, even
 * though the server is already overloaded.
 */
export const FAILURES_BEFORE_REPORT = 3;

/** The conditions and the Event to write after a failure. */
type FailureReport = { readonly conditions: DesiredCondition[]; readonly event: EventNote };

/**
 * Returns the conditions for an object that could not be reconciled. Ready becomes False, and Reconciling becomes True
 * because the object will be retried. The observed generation of all other conditions is preserved. Returns undefined
 * for the first few failures if the object is Ready, and for an {@link OutageError} if the current generation has
 * already been applied. Also returns undefined for the first few failures of any object if the API server or Redis is
 * not responding.
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
 * Returns true if the object's current generation has been applied. Returns false after a failure, or while waiting for
 * the end of a pause.
 */
function isApplied({ generation, conditions }: Parameters<typeof reportFailure>[1]): boolean {
  const ready = findCondition(conditions, 'Ready');
  const retrying = findCondition(conditions, 'Reconciling')?.reason === 'Retrying';
  return ready?.observedGeneration === generation && ready.reason !== 'WorkspacePaused' && !retrying;
}

/**
 * Returns the error message, if it can be shown to users. All other messages are hidden because they could contain
 * addresses or values.
 */
function shownMessage(error: unknown): string {
  if (error instanceof ReconcileError || isKubeError(error)) return error.message;
  return 'an unexpected error occurred; see the log of the controller';
}
