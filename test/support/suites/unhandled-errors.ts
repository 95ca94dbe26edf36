import { writeFileSync } from 'node:fs';
import type { Reporter, SerializedError } from 'vitest/node';

/** The environment variable with the file that `UnhandledErrors` writes. */
export const UNHANDLED_FILE = 'SLUICE_UNHANDLED_ERRORS';

/**
 * Reports errors outside of tests, which are missing from the JSON report, using one line per error with its source.
 */
// eslint-disable-next-line import/no-default-export -- vitest loads a reporter by its default export
export default class UnhandledErrors implements Reporter {
  onTestRunEnd(_modules: unknown, errors: readonly SerializedError[]): void {
    const file = process.env[UNHANDLED_FILE];
    if (file === undefined || errors.length === 0) return;
    const lines = errors.map(({ name, message, stack }) => {
      const place = stack?.split('\n').find(line => /\b(?:src|test)\//.test(line));
      return `${name}: ${message.split('\n')[0]}${place === undefined ? '' : ` (${place.trim()})`}\n`;
    });
    writeFileSync(file, lines.join(''));
  }
}
