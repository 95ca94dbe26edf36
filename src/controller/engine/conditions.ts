import type { Condition } from '../../api/conditions.ts';

export type { Condition };

/** A condition that was determined by a kind. The engine sets the transition time and the observed generation. */
export type DesiredCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'> & {
  /** Set this only for a condition that is kept from an older generation. */
  readonly observedGeneration?: number;
};

/** The maximum length of a condition message, as defined in the CRDs. */
const LONGEST_MESSAGE = 1024;

/** The Ready condition of an object if the kind does not plan one. */
const UNJUDGED: DesiredCondition = {
  type: 'Ready',
  status: 'Unknown',
  reason: 'Progressing',
  message: 'not reconciled yet',
};

/** These conditions follow the kstatus convention, so they are only present while they are True. */
const ONLY_WHILE_TRUE = new Set(['Reconciling', 'Stalled']);

/**
 * Returns the conditions that should be written to the status. The Ready condition is always present and comes first.
 * Reconciling and Stalled are only included while they are True. The `lastTransitionTime` is kept unless the status
 * changes. If a type occurs more than once, the last one is used.
 *
 * @param existing the current conditions of the object. Types that are no longer desired are removed.
 * @param nowMs milliseconds since the epoch. The time is stored in whole seconds, as in Kubernetes.
 */
export function mergeConditions(
  existing: readonly Condition[],
  desired: readonly DesiredCondition[],
  at: { readonly generation: number; readonly nowMs: number },
): Condition[] {
  const now = new Date(at.nowMs).toISOString().replace(/\.\d+Z$/, 'Z');
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

/** Truncates a message without splitting a character. */
function cut(message: string): string {
  return `${message.slice(0, LONGEST_MESSAGE - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** Returns the condition with the given type, or undefined if the object does not have one. */
export function findCondition<C extends Pick<Condition, 'type'>>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find(condition => condition.type === type);
}
