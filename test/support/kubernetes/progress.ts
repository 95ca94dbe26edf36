const EVERY_MS = 5_000;

/**
 * Reports long work on standard error: a single line that is updated on a terminal, or a line every 5 s. Does not write
 * anything for work that is completed earlier, unless `atOnce` is set.
 */
export function startProgress(what: string, options: { atOnce?: boolean } = {}): { end: () => void } {
  const output = process.stderr;
  const started = performance.now();
  let written = false;
  const write = (): void => {
    const line = `${what}, ${Math.round((performance.now() - started) / 1_000)} s`;
    output.write(output.isTTY ? `\r\u001b[K${line}` : `${line}\n`);
    written = true;
  };
  if (options.atOnce) write();
  const timer = setInterval(write, output.isTTY ? 1_000 : EVERY_MS);
  return {
    end: () => {
      clearInterval(timer);
      if (written && output.isTTY) output.write('\n');
    },
  };
}
