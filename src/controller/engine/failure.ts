import { isKubeError } from '../../kube/kube-error.ts';
import { type Condition, type DesiredCondition, findCondition } from './conditions.ts';
import { type EventNote, OutageError, ReconcileError, TerminalError } from './outcome.ts';

/**
 * So many failures in a row (about a second of retries) pass before an object that was Ready says otherwise: a short
 * loss of Redis must not become two writes for each of 100,000 objects.
 */
export const FAILURES_BEFORE_UNREADY = 8;

/** How a failure is told in the status, and as an Event when that is written. */
export type FailureReport = { readonly conditions: DesiredCondition[]; readonly event: EventNote };

/**
 * What the status says after a failure: `Ready=False` with `Reconciling` (tried again) or `Stalled` (a
 * {@link TerminalError}), and everything else as it was, still marked with the generation that it was judged from.
 * Undefined: nothing yet, or nothing at all of an {@link OutageError} where the generation is applied.
 *
 * @param failures of this object in a row, this one not counted
 */
export function reportFailure(
  error: unknown,
  object: { readonly generation: number; readonly conditions: readonly Condition[] | undefined },
  failures: number,
): FailureReport | undefined {
  if (error instanceof OutageError && isApplied(object)) return undefined;
  const terminal = error instanceof TerminalError;
  const ready = findCondition(object.conditions, 'Ready');
  const wasReady = ready?.status === 'True' && ready.observedGeneration === object.generation;
  if (wasReady && !terminal && failures + 1 < FAILURES_BEFORE_UNREADY) return undefined;

  const reason = error instanceof ReconcileError ? error.reason : 'ReconcileFailed';
  const message = shownMessage(error);
  const kept = (object.conditions ?? []).filter(({ type }) => !['Ready', 'Reconciling', 'Stalled'].includes(type));
  return {
    conditions: [
      { type: 'Ready', status: 'False', reason, message },
      terminal
        ? { type: 'Stalled', status: 'True', reason, message }
        : { type: 'Reconciling', status: 'True', reason: 'Retrying', message },
      ...kept,
    ],
    event: { type: 'Warning', reason, message },
  };
}

/** Whether the object's present generation was judged: neither failed nor kept back by a pause. */
function isApplied({ generation, conditions }: Parameters<typeof reportFailure>[1]): boolean {
  const ready = findCondition(conditions, 'Ready');
  const retrying = findCondition(conditions, 'Reconciling')?.reason === 'Retrying';
  return ready?.observedGeneration === generation && ready.reason !== 'WorkspacePaused' && !retrying;
}

/** Only messages that were written for users: others may hold addresses or values. */
function shownMessage(error: unknown): string {
  if (error instanceof ReconcileError || isKubeError(error)) return error.message;
  return 'something unexpected failed; the log of the controller says what';
}
