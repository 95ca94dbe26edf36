/** Steps of a shutdown. */
export interface ShutdownSteps {
  /** Asks clients to go elsewhere, and keeps answering. */
  readonly drain: () => void;
  /** Finishes what is under way, and exits. */
  readonly stop: () => Promise<void>;
  /** Exits at once: `stop` took too long. */
  readonly giveUp: () => void;
}

export interface Shutdown {
  /** SIGTERM drains first. SIGINT and any second signal skip the wait. */
  readonly onSignal: (signal: 'SIGTERM' | 'SIGINT') => void;
  /** Returns the health of the process: not ready after the first signal. */
  readonly health: () => { readonly ready: boolean; readonly impairments: readonly { readonly message: string }[] };
}

/** Longest time for `stop`, ms. With the default delay it fits into the 30 s of a pod. */
const STOP_WITHIN_MS = 20_000;

/**
 * Creates the shutdown of a process. Watchers of the API server remove a terminating pod from its Service, each in its
 * own time, and the pod gets requests until then. So the process is unready at once, and keeps serving for `delayMs`.
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
