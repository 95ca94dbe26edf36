import { type Condition, findCondition } from './conditions.ts';
import type { Outcome } from './outcome.ts';

/** For how long a reference may be missing before the object counts as failed, ms. */
export const MISSING_FAILS_AFTER_MS = 300_000;

/** What of an object decides for how long its reference has been missing. */
export type Waiting = {
  readonly key: string;
  readonly generation: number;
  readonly conditions: readonly Condition[] | undefined;
};

export type MissingReferences = {
  /**
   * Returns the outcome as it is to be written: waiting at first, with one requeue at the end of the five minutes, and
   * failed from then on, until the outcome is another one.
   */
  readonly judge: <O extends Outcome>(object: Waiting, outcome: O) => O;
  readonly forget: (key: string) => void;
};

/**
 * Fails objects whose reference stays missing: `Ready=False` and `Stalled=True` (kstatus: Failed) with the reason of the
 * wait, so that a GitOps sync ends with a misspelt name instead of waiting for it.
 *
 * The wait counts from the `lastTransitionTime` of Ready, so that a restart does not begin it anew.
 *
 * @param wallMs milliseconds since the epoch
 */
export function createMissingReferences(wallMs: () => number): MissingReferences {
  /** Key → since when, ms, where Ready was Unknown for another reason before: its transition says nothing of this wait. */
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
