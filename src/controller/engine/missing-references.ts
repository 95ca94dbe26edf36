import { type Condition, findCondition } from './conditions.ts';
import type { Outcome } from './outcome.ts';

/** How long a reference may be missing before the object counts as failed, ms. */
const MISSING_FAILS_AFTER_MS = 300_000;

/** The parts of an object that determine how long its reference has been missing. */
export type Waiting = {
  readonly key: string;
  readonly generation: number;
  readonly conditions: readonly Condition[] | undefined;
};

type MissingReferences = {
  /**
   * Returns the outcome to write: waiting at first, with one requeue at the end of the five minutes, then failed, until
   * the outcome changes.
   */
  readonly judge: <O extends Outcome>(object: Waiting, outcome: O) => O;
  readonly forget: (key: string) => void;
};

/**
 * Fails objects whose reference stays missing: `Ready=False` and `Stalled=True` (kstatus: Failed) with the same reason.
 * A GitOps sync then fails on a misspelt name instead of waiting for it.
 *
 * The wait counts from the `lastTransitionTime` of Ready, so a restart does not extend it.
 *
 * @param wallMs milliseconds since the epoch
 */
export function createMissingReferences(wallMs: () => number): MissingReferences {
  /** Key → start of the wait, ms, if Ready was Unknown for another reason before and its transition time is older. */
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
