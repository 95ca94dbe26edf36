/**
 * Runs `stop` once on SIGINT, SIGTERM or SIGHUP and then exits as a process that died of that signal would
 * (128 + its number). A second signal exits at once; the children die with this process in any case.
 *
 * @param options.interruptIsSuccess asked at SIGINT: true exits with 0, of a program that runs until Ctrl-C
 */
export function stopOnSignal(
  stop: () => Promise<void>,
  options: { readonly interruptIsSuccess?: () => boolean } = {},
): void {
  const numbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
  let stopping = false;
  for (const [signal, number] of Object.entries(numbers)) {
    process.on(signal, () => {
      if (stopping) process.exit(128 + number);
      stopping = true;
      const success = signal === 'SIGINT' && options.interruptIsSuccess?.() === true;
      stop().then(
        () => process.exit(success ? 0 : 128 + number),
        (error: unknown) => {
          console.error('stopping failed', error);
          process.exit(1);
        },
      );
    });
  }
}
