import { isKubeError } from '../../kube/kube-error.ts';
import { type Condition, type DesiredCondition, findCondition } from './conditions.ts';
import { type EventNote, OutageError, ReconcileError } from './outcome.ts';

/**
 * The number of consecutive failures after which a Ready object reports them. This corresponds to about a second of
 * retries. We wait because a short outage of Redis should not cause two writes for each of 100,000 objects.
 */
export const FAILURES_BEFORE_UNREADY = 8;

/** The conditions and the Event that are written after a failure. */
type FailureReport = { readonly conditions: DesiredCondition[]; readonly event: EventNote };

/**
 * Returns the conditions for an object that failed to reconcile. Ready is set to False and Reconciling is set to True,
 * because the object will be retried. Other conditions are kept with the generation that they were observed at. Returns
 * undefined for the first failures of a Ready object. Also returns undefined for an {@link OutageError} if the current
 * generation has been applied.
 *
 * @param failures the number of consecutive failures of this object before this one
 */
export function reportFailure(
  error: unknown,
  object: { readonly generation: number; readonly conditions: readonly Condition[] | undefined },
  failures: number,
): FailureReport | undefined {
  if (error instanceof OutageError && isApplied(object)) return undefined;
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

/**
 * Returns true if the current generation of the object has been applied. This is not the case if it failed or if it is
 * waiting for the end of a pause.
 */
function isApplied({ generation, conditions }: Parameters<typeof reportFailure>[1]): boolean {
  const ready = findCondition(conditions, 'Ready');
  const retrying = findCondition(conditions, 'Reconciling')?.reason === 'Retrying';
  return ready?.observedGeneration === generation && ready.reason !== 'WorkspacePaused' && !retrying;
}

/**
 * Returns the message of an error if it was written for users. The messages of other errors could contain addresses or
 * values, so they are not shown.
 */
function shownMessage(error: unknown): string {
  if (error instanceof ReconcileError || isKubeError(error)) return error.message;
  return 'an unexpected error occurred; see the log of the controller';
}
