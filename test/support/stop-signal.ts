/**
 * Runs `stop` once on SIGINT, SIGTERM, or SIGHUP, and then exits with 128 + the number of the signal. A second signal
 * exits immediately. The children always end with this process. Returns a function that runs `stop` unless a signal has
 * already started it, and waits for it. Use it at the end of the program, because a signal also ends the children.
 *
 * @param options.interruptIsSuccess called on SIGINT. If it returns true, the exit code is 0
 */
export function stopOnSignal(
  stop: () => Promise<void>,
  options: { readonly interruptIsSuccess?: () => boolean } = {},
): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  const stopOnce = () => (stopped ??= stop());
  const numbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
  let stopping = false;
  for (const [signal, number] of Object.entries(numbers)) {
    process.on(signal, () => {
      if (stopping) process.exit(128 + number);
      stopping = true;
      const success = signal === 'SIGINT' && options.interruptIsSuccess?.() === true;
      stopOnce().then(
        () => process.exit(success ? 0 : 128 + number),
        (error: unknown) => {
          console.error('stopping failed', error);
          process.exit(1);
        },
      );
    });
  }
  return stopOnce;
}
