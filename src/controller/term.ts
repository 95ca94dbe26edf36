import type { Term } from './engine/elector.ts';
import { ReconcileError } from './engine/outcome.ts';

/** Why nothing may be written, as statuses report it. */
export const HELD = {
  unreached: 'the controller has not connected to Redis yet and will retry',
  foreign:
    'Redis contains the data of another Kubernetes cluster. The controller does not write to it until you change SLUICE_REDIS_URL',
  lost: 'Redis has lost its control state. The controller is rebuilding it from the objects, and no events are routed until this is complete',
} as const;

/** State of one term with Redis. The next term starts with a new one. */
export interface TermState {
  readonly term: Term;
  /** Aborts when the lease is lost or the process stops: nothing more is started. */
  readonly over: AbortSignal;
  /** The fencing epoch, once Redis has given one. */
  epoch: number | undefined;
  /** Why nothing may be written; undefined: writes are allowed. */
  held: string | undefined;
  /** A tenant is applied, or there is none. */
  applied: boolean;
  /** Why the term does not work: the last failure to begin or to rebuild, or the loss that is being rebuilt. */
  failure: unknown;
}

/** Marks the term as working. */
export function markApplied(state: TermState): void {
  state.applied = true;
  state.failure = undefined;
}

/** Creates the record of this replica's terms: the current one, its fencing epoch, and why it does not work. */
export function createTerms() {
  let current: TermState | undefined;

  /** Returns the state of a term that lasts. */
  function lasting(): TermState | undefined {
    return current === undefined || current.term.signal.aborted ? undefined : current;
  }

  /** Returns the fencing epoch of this term. @throws without a term, and while nothing may be written */
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
    /** Returns the state of the term, a new one for a new term. */
    begin(term: Term, over: AbortSignal): TermState {
      if (current?.term.signal !== term.signal) {
        current = { term, over, epoch: undefined, held: HELD.unreached, applied: false, failure: undefined };
      }
      return current;
    },
    /** Returns why this term, or the last one, does not work; undefined when nothing failed. */
    failure: (): unknown => current?.failure,
    fence,
  };
}

export type Terms = ReturnType<typeof createTerms>;
