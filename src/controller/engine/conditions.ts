import type { Condition } from '../../api/conditions.ts';
import { timestampOf } from '../../kube/object.ts';

export type { Condition };

/** A condition as it was determined by a kind. Transition time and observed generation are filled in by the engine. */
export type DesiredCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'> & {
  /** Only set for a condition carried over from an older generation. */
  readonly observedGeneration?: number;
};

/** The maximum length of a condition message. Must match the CRDs. */
const LONGEST_MESSAGE = 1024;

/** The Ready condition for kinds that do not provide one. */
const UNJUDGED: DesiredCondition = {
  type: 'Ready',
  status: 'Unknown',
  reason: 'Progressing',
  message: 'not reconciled yet',
};

/** By convention (see kstatus), these conditions are only present if they are True. */
const ONLY_WHILE_TRUE = new Set(['Reconciling', 'Stalled']);

/**
 * Returns the conditions to write to the status. Ready is always present and comes first, whereas Reconciling and
 * Stalled are only included while True. If the status has not changed, the `lastTransitionTime` is preserved. If
 * several conditions have the same type, the last condition is used.
 *
 * @param existing the object's current conditions. Types which are no longer desired are removed.
 * @param nowMs milliseconds since the epoch, stored in whole seconds as Kubernetes does.
 */
export function mergeConditions(
  existing: readonly Condition[],
  desired: readonly DesiredCondition[],
  at: { readonly generation: number; readonly nowMs: number },
): Condition[] {
  const now = timestampOf(at.nowMs);
  const wanted = new Map([UNJUDGED, ...desired].map(condition => [condition.type, condition]));
  return [...wanted.values()]
    .filter(({ type, status }) => !ONLY_WHILE_TRUE.has(type) || status === 'True')
    .map(({ type, status, reason, message, observedGeneration = at.generation }) => {
      const before = existing.find(condition => condition.type === type);
      return {
        type,
        status,
        reason,
        message: message.length <= LONGEST_MESSAGE ? message : cut(message),
        observedGeneration,
        lastTransitionTime: before?.status === status ? before.lastTransitionTime : now,
      };
    });
}

/** Truncates a message, taking care not to split a character. */
function cut(message: string): string {
  return `${message.slice(0, LONGEST_MESSAGE - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** Returns the condition with the given type. Returns undefined if there is no such condition. */
export function findCondition<C extends Pick<Condition, 'type'>>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find(condition => condition.type === type);
}
