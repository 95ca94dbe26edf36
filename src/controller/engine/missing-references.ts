import { type Condition, findCondition } from './conditions.ts';
import type { Outcome } from './outcome.ts';

/** How long a reference may be missing before the object is considered failed, in milliseconds. */
const MISSING_FAILS_AFTER_MS = 300_000;

/** The fields of an object that are used to determine how long a reference has been missing. */
export type Waiting = {
  readonly key: string;
  readonly generation: number;
  readonly conditions: readonly Condition[] | undefined;
};

type MissingReferences = {
  /**
   * Returns the outcome that should be written. The object is waiting at first and is requeued once at the end of the
   * five minutes. If the reference is still missing by then, the object has failed until the outcome changes.
   */
  readonly judge: <O extends Outcome>(object: Waiting, outcome: O) => O;
  readonly forget: (key: string) => void;
};

/**
 * Marks objects as failed if they refer to an object that does not exist for five minutes. Ready is set to False and
 * Stalled is set to True, both with the same reason. This allows GitOps tools to report a misspelled name instead of
 * waiting indefinitely.
 *
 * The time is measured from the `lastTransitionTime` of the Ready condition, so that a restart does not extend it.
 *
 * @param wallMs returns milliseconds since the epoch
 */
export function createMissingReferences(wallMs: () => number): MissingReferences {
  /**
   * The time when an object started to wait, in milliseconds, by key. This is used if Ready was already Unknown for a
   * different reason, because the transition time is older in this case.
   */
  const since = new Map<string, number>();

  function sinceMs({ key, generation, conditions }: Waiting, reason: string): number | 'failed' {
    const nowMs = wallMs();
    const said = findCondition(conditions, 'Ready');
    const same = said?.reason === reason && said.observedGeneration === generation;
    if (!same) {
      if (said?.status === 'Unknown') since.set(key, nowMs);
      else since.delete(key);
      return nowMs;
    }
    if (said.status === 'False') return 'failed';
    return since.get(key) ?? Date.parse(said.lastTransitionTime);
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
