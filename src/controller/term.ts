import type { Term } from './engine/elector.ts';
import { ReconcileError } from './engine/outcome.ts';

/** The reasons why writes are not allowed, as used in statuses. */
export const HELD = {
  unreached: 'the controller has not connected to Redis yet and will retry',
  foreign:
    'Redis contains the data of another Kubernetes cluster. The controller does not write to this Redis until you change SLUICE_REDIS_URL',
  taken:
    'Redis contains the data of another installation in this cluster. The controller does not write to this Redis until you change SLUICE_REDIS_URL',
  format:
    'Redis contains data in a format that was written by another version of Sluice and is not supported by this version. The controller does not write to this Redis',
  lost: 'Redis has lost its control state. The controller is restoring it from the objects. Until it has finished, no events are routed',
} as const;

/** The state of a single term in Redis. Each term has its own state. */
export interface TermState {
  readonly term: Term;
  /** Aborted when the lease is lost or the process stops. No work should be started after that. */
  readonly over: AbortSignal;
  /** Fencing epoch. Undefined until Redis has returned the epoch. */
  epoch: number | undefined;
  /** The random id of the Redis that this term writes to. Undefined until Redis has returned it. */
  store: string | undefined;
  /** The reason why writes are not allowed. Undefined if writes are allowed. */
  held: string | undefined;
  /** True if at least one tenant has been applied, or there are no tenants. */
  applied: boolean;
  /**
   * The reason why the term is not working: either the last error while starting or rebuilding, or the loss that caused
   * the rebuild.
   */
  failure: unknown;
}

/** Marks the term as working. */
export function markApplied(state: TermState): void {
  state.applied = true;
  state.failure = undefined;
}

/**
 * Creates the state for the terms of this replica. Includes the current term, its fencing epoch, and the reason if it
 * is not working.
 */
export function createTerms() {
  let current: TermState | undefined;

  /** Returns the state of the current term unless it has ended. */
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
        current = {
          term,
          over,
          epoch: undefined,
          store: undefined,
          held: HELD.unreached,
          applied: false,
          failure: undefined,
        };
      }
      return current;
    },
    /** Returns the error of the current term or the last term (if there is one). */
    failure: (): unknown => current?.failure,
    /**
     * Returns the id of the Redis that the current or the last term has written to. Undefined if this is not the term
     * after this number of transitions, because another replica may have used another Redis in the meantime.
     */
    store: (transitions = current?.term.transitions): string | undefined =>
      current?.term.transitions === transitions ? current?.store : undefined,
    fence,
  };
}

export type Terms = ReturnType<typeof createTerms>;
