import type { Condition } from '../../api/conditions.ts';

export type { Condition };

/** A condition as a kind plans it. The engine adds the time and the generation. */
export type DesiredCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'> & {
  /** Only for a condition that is kept from an older generation. */
  readonly observedGeneration?: number;
};

/** The limit in the CRDs. */
const LONGEST_MESSAGE = 1024;

/** Ready of an object whose kind does not plan it. */
const UNJUDGED: DesiredCondition = {
  type: 'Ready',
  status: 'Unknown',
  reason: 'Progressing',
  message: 'not reconciled yet',
};

/** kstatus: these two are absent unless True. */
const ONLY_WHILE_TRUE = new Set(['Reconciling', 'Stalled']);

/**
 * Returns the conditions to write: exactly the desired ones, Ready always and first, Reconciling and Stalled only while
 * True. Keeps `lastTransitionTime` unless the status changes (metav1.Condition). If a type occurs twice, the last wins.
 *
 * @param existing the object's conditions now; types that are not desired any more are dropped
 * @param nowMs milliseconds since the epoch; stored in whole seconds, as in Kubernetes
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

/** Cuts a message, but never within a character. */
function cut(message: string): string {
  return `${message.slice(0, LONGEST_MESSAGE - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** Returns the condition of that type, if the object has one. */
export function findCondition<C extends Pick<Condition, 'type'>>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find(condition => condition.type === type);
}
