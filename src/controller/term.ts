import type { Term } from './engine/elector.ts';
import { ReconcileError } from './engine/outcome.ts';

/** The reasons why writes are not allowed, as they are shown in statuses. */
export const HELD = {
  unreached: 'the controller has not connected to Redis yet and will retry',
  foreign:
    'Redis contains the data of another Kubernetes cluster. The controller does not write to this Redis until you change SLUICE_REDIS_URL',
  taken:
    'Redis contains the data of another installation in this cluster. The controller does not write to this Redis until you change SLUICE_REDIS_URL',
  format:
    'Redis contains data in a format that was written by another version of Sluice and is not supported by this version. The controller does not write to this Redis',
  lost: 'Redis has lost its control state. The controller is restoring it from the objects, and no events are routed until this has been completed',
} as const;

/** The state of a single term in Redis. There is a new one for each term. */
export interface TermState {
  readonly term: Term;
  /** Aborted when the lease is lost or the process stops. No work should be started after that. */
  readonly over: AbortSignal;
  /** Fencing epoch. This is undefined until it has been returned by Redis. */
  epoch: number | undefined;
  /** The reason why writes are not allowed. If they are allowed, this is undefined. */
  held: string | undefined;
  /** Whether at least one tenant was applied, or there are no tenants. */
  applied: boolean;
  /**
   * The reason why the term is not working. This is either the last error when it was started or rebuilt, or the loss
   * for which it is being rebuilt.
   */
  failure: unknown;
}

/** Marks the term as working. */
export function markApplied(state: TermState): void {
  state.applied = true;
  state.failure = undefined;
}

/**
 * Creates the state for the terms of this replica. This includes the current term, its fencing epoch, and the reason if
 * it is not working.
 */
export function createTerms() {
  let current: TermState | undefined;

  /** Returns the state of the current term, but only if it has not ended. */
  function lasting(): TermState | undefined {
    return current === undefined || current.term.signal.aborted ? undefined : current;
  }

  /** Returns the fencing epoch of the current term. @throws if there is no term, or if writes are not allowed */
  const fence = (): number => {
    const state = lasting();
    if (state === undefined) throw new Error('not leading');
    if (state.held !== undefined || state.epoch === undefined) {
      throw new ReconcileError('RedisUnavailable', state.held ?? HELD.unreached);
    }
    return state.epoch;
  };

  return {
    lasting,
    /** Returns the state of the given term, creating it for a new term. */
    begin(term: Term, over: AbortSignal): TermState {
      if (current?.term.signal !== term.signal) {
        current = { term, over, epoch: undefined, held: HELD.unreached, applied: false, failure: undefined };
      }
      return current;
    },
    /** Returns the error of the current term or of the last term (if there was one). */
    failure: (): unknown => current?.failure,
    fence,
  };
}

export type Terms = ReturnType<typeof createTerms>;
