/**
 * Runs `stop` once on SIGINT, SIGTERM or SIGHUP and then exits as a process that died of that signal would
 * (128 + its number). A second signal exits at once; the children die with this process in any case.
 */
export function stopOnSignal(stop: () => Promise<void>): void {
  const numbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
  let stopping = false;
  for (const [signal, number] of Object.entries(numbers)) {
    process.on(signal, () => {
      if (stopping) process.exit(128 + number);
      stopping = true;
      stop().then(
        () => process.exit(128 + number),
        (error: unknown) => {
          console.error('stopping failed', error);
          process.exit(1);
        },
      );
    });
  }
}
