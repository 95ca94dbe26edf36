/**
 * Calls `run` every `everyMs`. The first call is after 50 % to 100 % of this time, so that intervals that are started
 * together don't end at the same moment. Use the returned function to stop.
 */
export function startSpreadInterval(run: () => void, everyMs: number, random: () => number): () => void {
  let repeated: NodeJS.Timeout | undefined;
  const first = setTimeout(
    () => {
      repeated = setInterval(run, everyMs);
      run();
    },
    everyMs * (1 - random() / 2),
  );
  return () => {
    clearTimeout(first);
    clearInterval(repeated);
  };
}
