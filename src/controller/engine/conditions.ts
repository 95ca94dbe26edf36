import type { Condition } from '../../api/conditions.ts';

export type { Condition };

/** What a kind says; the engine adds when and for which generation. */
export type DesiredCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'> & {
  /** Only for what was judged from an older generation and is merely kept. */
  readonly observedGeneration?: number;
};

/** The CRDs' limit. */
const LONGEST_MESSAGE = 1024;

/** Said of an object whose kind says nothing of Ready. */
const UNJUDGED: DesiredCondition = {
  type: 'Ready',
  status: 'Unknown',
  reason: 'Progressing',
  message: 'not judged yet',
};

/** kstatus: these two are absent unless they are True. */
const ONLY_WHILE_TRUE = new Set(['Reconciling', 'Stalled']);

/**
 * The conditions to write: exactly the desired ones, Ready always and first, Reconciling and Stalled only while True.
 * `lastTransitionTime` is kept unless the status flips (metav1.Condition); a type said twice counts as said last.
 *
 * @param existing as the object has them now; types that are not desired any more are left out
 * @param nowMs milliseconds since the epoch; stored in whole seconds, as Kubernetes does
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

/** Not through the middle of a character. */
function cut(message: string): string {
  return `${message.slice(0, LONGEST_MESSAGE - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** The condition of that type, if the object has one. */
export function findCondition<C extends Pick<Condition, 'type'>>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find(condition => condition.type === type);
}
