/** What a process does when it is asked to end. */
export interface ShutdownSteps {
  /** From now on say that nothing more should be sent here; go on answering what comes. */
  readonly drain: () => void;
  /** Finish what is under way, and end. */
  readonly stop: () => Promise<void>;
  /** It took too long. */
  readonly giveUp: () => void;
}

export interface Shutdown {
  /** SIGTERM drains first; SIGINT, and whatever comes second, ends the wait. */
  readonly onSignal: (signal: 'SIGTERM' | 'SIGINT') => void;
  /** Returns the health of the process: not ready from the first signal on. */
  readonly health: () => { readonly ready: boolean; readonly impairments: readonly { readonly message: string }[] };
}

/** How long finishing may take before the process ends all the same, ms. With the usual wait it fits into the 30 s of a pod. */
const STOP_WITHIN_MS = 20_000;

/**
 * A pod that ends is taken out of its Service by watchers of the API server, each in its own time, and gets requests until
 * then: it says at once that it is not ready, and goes on serving for `delayMs`.
 */
export function createShutdown(
  { drain, stop, giveUp }: ShutdownSteps,
  delayMs: number,
  setTimer: (action: () => void, ms: number) => () => void = timer,
): Shutdown {
  let state: 'runs' | 'drains' | 'stops' = 'runs';
  let endWait = () => {};

  function finish(): void {
    if (state === 'stops') return;
    state = 'stops';
    endWait();
    const cancel = setTimer(giveUp, STOP_WITHIN_MS);
    stop().then(cancel, giveUp);
  }

  return {
    onSignal(signal) {
      const first = state === 'runs';
      if (first) {
        state = 'drains';
        drain();
      }
      if (!first || signal === 'SIGINT' || delayMs === 0) finish();
      else endWait = setTimer(finish, delayMs);
    },
    health: () =>
      state === 'runs'
        ? { ready: true, impairments: [] }
        : { ready: false, impairments: [{ message: 'The process is stopping.' }] },
  };
}

function timer(action: () => void, ms: number): () => void {
  const handle = setTimeout(action, ms);
  return () => clearTimeout(handle);
}
