const LOOK_EVERY_MS = 250;

/** Calls the function once when this process's parent has ended. */
export function whenOrphaned(call: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    call();
  }, LOOK_EVERY_MS);
  timer.unref();
}
