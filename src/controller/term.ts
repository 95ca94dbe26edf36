import type { Term } from './engine/elector.ts';
import { ReconcileError } from './engine/outcome.ts';

/** The reasons why writes are not allowed, as they are shown in statuses. */
export const HELD = {
  unreached: 'the controller has not connected to Redis yet and will retry',
  foreign:
    'Redis contains the data of another Kubernetes cluster. The controller does not write to it until you change SLUICE_REDIS_URL',
  lost: 'Redis has lost its control state. The controller is rebuilding it from the objects, and no events are routed until this is complete',
} as const;

/** The state of one term in Redis. A new state is created for each term. */
export interface TermState {
  readonly term: Term;
  /** Aborted when the lease is lost or when the process stops. After that, no more work is started. */
  readonly over: AbortSignal;
  /** The fencing epoch. Undefined until Redis has returned one. */
  epoch: number | undefined;
  /** The reason why writes are not allowed. Undefined if writes are allowed. */
  held: string | undefined;
  /** True if at least one tenant has been applied or if there are no tenants. */
  applied: boolean;
  /**
   * The reason why the term does not work. This is the last error when it was started or rebuilt, or the loss that is
   * being rebuilt.
   */
  failure: unknown;
}

/** Marks the term as working. */
export function markApplied(state: TermState): void {
  state.applied = true;
  state.failure = undefined;
}

/**
 * Creates the state of the terms of this replica. It contains the current term, its fencing epoch and the reason if it
 * does not work.
 */
export function createTerms() {
  let current: TermState | undefined;

  /** Returns the state of the current term if it has not ended. */
  function lasting(): TermState | undefined {
    return current === undefined || current.term.signal.aborted ? undefined : current;
  }

  /** Returns the fencing epoch of the current term. @throws if there is no term or if writes are not allowed */
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
    /** Returns the state of the given term. A new state is created for a new term. */
    begin(term: Term, over: AbortSignal): TermState {
      if (current?.term.signal !== term.signal) {
        current = { term, over, epoch: undefined, held: HELD.unreached, applied: false, failure: undefined };
      }
      return current;
    },
    /** Returns the error of the current term or of the last one. Returns undefined if there was no error. */
    failure: (): unknown => current?.failure,
    fence,
  };
}

export type Terms = ReturnType<typeof createTerms>;
