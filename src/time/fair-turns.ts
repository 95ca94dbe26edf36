import type { Clock } from './clock.ts';

/** Gives back the place of a call. Has no effect after the first time. */
export type Leave = () => void;

/** The reason why a call may not start. */
export type NoTurn = 'full' | 'late' | 'aborted';

interface TurnOptions {
  /** True if the call waits for as long as it takes. */
  readonly isPatient?: boolean;
  readonly signal?: AbortSignal;
  /** Called if the call has to wait. */
  readonly onWait?: () => void;
}

/**
 * FairTurns determines the order in which a process starts the calls of many owners. Each iteration of the event loop
 * starts a single call, so that data arriving in the meantime is processed between two calls. Owners take turns
 * regardless of the number of their calls. In addition, the number of calls of an owner in progress is limited.
 */
export interface FairTurns<Key> {
  /** Waits until a call of the owner may start. */
  readonly take: (owner: Key, options?: TurnOptions) => Promise<Leave | NoTurn>;
}

interface Owner<Key> {
  readonly key: Key;
  running: number;
  /** The functions that start the waiting calls, in the order of these calls. */
  readonly waiting: Set<(leave: Leave) => void>;
}

interface FairTurnsOptions {
  /** The maximum number of calls of an owner in progress. */
  readonly places: number;
  /** The time after which a call gives back its place, because a call which takes longer does not use the CPU. */
  readonly holdMs: number;
  /** The maximum number of waiting calls of an owner. */
  readonly mostWaiting: number;
  readonly mostWaitMs: number;
  readonly clock: Pick<Clock, 'setTimer'>;
  /** Called when the number of waiting calls changes. */
  readonly onWaiting?: (change: 1 | -1) => void;
  /** Runs a function in the next iteration of the event loop. */
  readonly nextIteration?: (run: () => void) => void;
}

/** Adds a call to the waiting calls of its owner. @param update called when this changes who may start a call */
function wait<Key>(
  owner: Owner<Key>,
  { isPatient = false, signal, onWait }: TurnOptions,
  { mostWaitMs, clock, onWaiting }: FairTurnsOptions,
  update: (owner: Owner<Key>) => void,
): Promise<Leave | NoTurn> {
  return new Promise(resolve => {
    const end = (outcome: Leave | NoTurn) => {
      owner.waiting.delete(end);
      cancel?.();
      signal?.removeEventListener('abort', abort);
      onWaiting?.(-1);
      resolve(outcome);
    };
    const giveUp = (reason: NoTurn) => {
      end(reason);
      update(owner);
    };
    const abort = () => giveUp('aborted');
    const cancel = isPatient ? undefined : clock.setTimer(() => giveUp('late'), mostWaitMs);
    signal?.addEventListener('abort', abort, { once: true });
    owner.waiting.add(end);
    onWait?.();
    onWaiting?.(1);
    update(owner);
  });
}

/** Creates the turns of owners that are identified by a key, e.g. a string. */
export function createFairTurns<Key = string>(options: FairTurnsOptions): FairTurns<Key> {
  const { places, holdMs, mostWaiting, clock, nextIteration = setImmediate } = options;
  const owners = new Map<Key, Owner<Key>>();
  /** Owners with a waiting call and a free place, in the order of their turns. */
  const ready = new Set<Owner<Key>>();
  /** True if `startNext` will run. Until then, no other call starts. */
  let isPlanned = false;

  function plan(): void {
    if (isPlanned) return;
    isPlanned = true;
    nextIteration(startNext);
  }

  function startNext(): void {
    isPlanned = false;
    for (const owner of ready) {
      const [start] = owner.waiting;
      // The next turn of this owner is after all others.
      ready.delete(owner);
      start?.(begin(owner));
      update(owner);
      return;
    }
  }

  function begin(owner: Owner<Key>): Leave {
    owner.running++;
    plan();
    let isHeld = true;
    const leave = () => {
      if (!isHeld) return;
      isHeld = false;
      cancel();
      owner.running--;
      update(owner);
    };
    const cancel = clock.setTimer(leave, holdMs);
    return leave;
  }

  function update(owner: Owner<Key>): void {
    if (owner.waiting.size === 0) {
      ready.delete(owner);
      if (owner.running === 0) owners.delete(owner.key);
    } else if (owner.running < places) {
      ready.add(owner);
      plan();
    }
  }

  return {
    async take(key, turn = {}) {
      if (turn.signal?.aborted) return 'aborted';
      let owner = owners.get(key);
      if (owner === undefined) owners.set(key, (owner = { key, running: 0, waiting: new Set() }));
      if (!isPlanned && owner.running < places) return begin(owner);
      return !turn.isPatient && owner.waiting.size >= mostWaiting ? 'full' : wait(owner, turn, options, update);
    },
  };
}
