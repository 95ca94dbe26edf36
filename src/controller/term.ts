import type { Term } from './engine/elector.ts';
import { ReconcileError } from './engine/outcome.ts';

/** Reasons for not allowing writes, as shown in statuses. */
export const HELD = {
  unreached: 'the controller has not connected to Redis yet and will retry',
  foreign:
    'Redis contains the data of another Kubernetes cluster. The controller does not write to it until you change SLUICE_REDIS_URL',
  taken:
    'Redis contains the data of another installation in this cluster. The controller does not write to it until you change SLUICE_REDIS_URL',
  format:
    'Redis contains data that another version of Sluice has written in a format that this version cannot read. The controller does not write to it',
  lost: 'Redis has lost its control state. The controller is rebuilding it from the objects, and no events are routed until this is complete',
} as const;

/** State of one term in Redis. Each term gets a new one. */
export interface TermState {
  readonly term: Term;
  /** Aborted when the lease is lost or the process stops. No work should be started after that. */
  readonly over: AbortSignal;
  /** Fencing epoch. Undefined until returned by Redis. */
  epoch: number | undefined;
  /** Why writes aren't allowed. Undefined if they are. */
  held: string | undefined;
  /** Whether at least one tenant has been applied, or there aren't any tenants. */
  applied: boolean;
  /**
   * Why the term doesn't work: either the last error from starting or rebuilding it, or the loss that is being rebuilt.
   */
  failure: unknown;
}

/** Marks the term as working. */
export function markApplied(state: TermState): void {
  state.applied = true;
  state.failure = undefined;
}

/**
 * Creates the state of this replica's terms: the current term, its fencing epoch, and why it doesn't work, if that is
 * the case.
 */
export function createTerms() {
  let current: TermState | undefined;

  /** Returns the state of the current term, provided that it hasn't ended. */
  function lasting(): TermState | undefined {
    return current === undefined || current.term.signal.aborted ? undefined : current;
  }

  /** Returns the current term's fencing epoch. @throws if there is no term or writes are not allowed */
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
    /** Returns the error of the current or last term, if any. */
    failure: (): unknown => current?.failure,
    fence,
  };
}

export type Terms = ReturnType<typeof createTerms>;
