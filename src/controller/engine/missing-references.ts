import { type Condition, findCondition } from './conditions.ts';
import type { Outcome } from './outcome.ts';

/** The time after which an object with a missing reference is considered failed, in milliseconds. */
const MISSING_FAILS_AFTER_MS = 300_000;

/** Object fields needed to determine the time for which a reference has been missing. */
export type Waiting = {
  readonly key: string;
  readonly generation: number;
  readonly conditions: readonly Condition[] | undefined;
};

type MissingReferences = {
  /**
   * Returns the outcome to write. At first, the object is waiting. The object is requeued a single time, at the end of
   * the five minutes. If the reference is still missing at that point, the object stays failed until the outcome
   * changes.
   */
  readonly judge: <O extends Outcome>(object: Waiting, outcome: O) => O;
  readonly forget: (key: string) => void;
};

/**
 * Marks objects as failed if an object they refer to doesn't exist for five minutes. Ready becomes False and Stalled
 * becomes True, with the same reason, so GitOps tools can report a misspelled name rather than wait indefinitely.
 *
 * A restart should not extend this time, so it is measured from the Ready condition's `lastTransitionTime`.
 *
 * @param wallMs returns milliseconds since the epoch
 */
export function createMissingReferences(wallMs: () => number): MissingReferences {
  /**
   * The time at which each object started waiting (in milliseconds), by key. Required because Ready may already have
   * been Unknown for a different reason. In this case, its transition time is too old.
   */
  const since = new Map<string, number>();

  function sinceMs({ key, generation, conditions }: Waiting, reason: string): number | 'failed' {
    const nowMs = wallMs();
    const ready = findCondition(conditions, 'Ready');
    const same = ready?.reason === reason && ready.observedGeneration === generation;
    if (!same) {
      if (ready?.status === 'Unknown') since.set(key, nowMs);
      else since.delete(key);
      return nowMs;
    }
    if (ready.status === 'False') return 'failed';
    return since.get(key) ?? Date.parse(ready.lastTransitionTime);
  }

  return {
    judge: (object, outcome) => {
      const ready = outcome.conditions.find(({ type }) => type === 'Ready');
      if (outcome.missingReference !== true || ready === undefined) {
        since.delete(object.key);
        return outcome;
      }
      const beganMs = sinceMs(object, ready.reason);
      const leftMs = beganMs === 'failed' ? 0 : beganMs + MISSING_FAILS_AFTER_MS - wallMs();
      if (leftMs > 0) return { ...outcome, requeueAfterMs: Math.min(leftMs, outcome.requeueAfterMs ?? leftMs) };
      since.delete(object.key);
      const failed = { status: 'False', reason: ready.reason, message: ready.message } as const;
      const others = outcome.conditions.filter(({ type }) => type !== 'Ready' && type !== 'Reconciling');
      return {
        ...outcome,
        conditions: [{ type: 'Ready', ...failed }, { type: 'Stalled', ...failed, status: 'True' }, ...others],
      };
    },
    forget: key => since.delete(key),
  };
}
