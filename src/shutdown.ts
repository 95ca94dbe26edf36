/** Steps performed during a shutdown. */
export interface ShutdownSteps {
  /** Asks clients to go elsewhere, while still serving requests. */
  readonly drain: () => void;
  /** Finishes any work in progress, then exits. */
  readonly stop: () => Promise<void>;
  /** Exits immediately. Used if `stop` takes too long. */
  readonly giveUp: () => void;
}

export interface Shutdown {
  /** On SIGTERM we drain first. SIGINT, or any second signal, skips the wait. */
  readonly onSignal: (signal: 'SIGTERM' | 'SIGINT') => void;
  /** Returns the process health. The process is no longer ready after the first signal. */
  readonly health: () => { readonly ready: boolean; readonly impairments: readonly { readonly message: string }[] };
}

type Signal = Parameters<Shutdown['onSignal']>[0];

let onSignal: (signal: Signal) => void = () => process.exit(0);

/**
 * Handles signals from now on. Until there is something to stop, the process just exits. As process 1 of a container,
 * it would otherwise ignore them while it starts, and would be killed at the end of the grace period of its pod.
 */
export function listenToSignals(): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => onSignal(signal));
}

/** Sets what to do on a signal. */
export function handleSignals(handle: (signal: Signal) => void): void {
  onSignal = handle;
}

/** The maximum time for `stop` in milliseconds. Together with the default delay, this fits into the 30 s of a pod. */
const STOP_WITHIN_MS = 20_000;

/**
 * Creates the shutdown for a process. When a pod is terminating, each watcher of the API server takes its own time to
 * remove it from the Service, and until then requests keep coming in. For this reason, the process becomes unready
 * right away but continues to serve for `delayMs`.
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
