import { isKubeError } from '../../kube/kube-error.ts';
import { type Condition, type DesiredCondition, findCondition } from './conditions.ts';
import { type EventNote, OutageError, ReconcileError } from './outcome.ts';

/**
 * Number of failures in a row (about a second of retries) before a Ready object reports them: a short outage of Redis
 * must not cause two writes for each of 100,000 objects.
 */
export const FAILURES_BEFORE_UNREADY = 8;

/** Conditions and Event of a failure. */
type FailureReport = { readonly conditions: DesiredCondition[]; readonly event: EventNote };

/**
 * Returns the conditions after a failure: `Ready=False` with `Reconciling`, because it is retried. Other conditions stay
 * and keep their generation. Returns undefined for the first failures of a Ready object, and for an {@link OutageError}
 * if the generation is applied.
 *
 * @param failures failures of this object in a row before this one
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

/** Returns whether the object's current generation is applied: it neither failed nor waits for the end of a pause. */
function isApplied({ generation, conditions }: Parameters<typeof reportFailure>[1]): boolean {
  const ready = findCondition(conditions, 'Ready');
  const retrying = findCondition(conditions, 'Reconciling')?.reason === 'Retrying';
  return ready?.observedGeneration === generation && ready.reason !== 'WorkspacePaused' && !retrying;
}

/** Returns messages that were written for users. Others may hold addresses or values. */
function shownMessage(error: unknown): string {
  if (error instanceof ReconcileError || isKubeError(error)) return error.message;
  return 'an unexpected error occurred; see the log of the controller';
}
