const EVERY_MS = 5_000;

/**
 * Tells standard error that something long is under way: one updating line on a terminal, elsewhere a line every 5 s.
 * Nothing is written for what ends sooner, unless `atOnce`.
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
