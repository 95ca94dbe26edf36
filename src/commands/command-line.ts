import { parseArgs } from 'node:util';
import { ConfigError } from '../config/config.ts';

/** Runs a command with the given arguments and returns its exit code. */
export type Command = (argv: readonly string[], env: Readonly<Record<string, string | undefined>>) => Promise<number>;

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/**
 * Parses the arguments that were passed to a command. @throws ConfigError with the usage if an argument is unknown or
 * does not have a value
 */
export function parseCommandLine<const O extends Options>(argv: readonly string[], options: O, usage: string) {
  try {
    return parseArgs({ args: [...argv], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new ConfigError(`${(error as Error).message}\nusage: ${usage}`);
  }
}

/** Writes lines to standard output. */
export function print(lines: readonly string[]): void {
  process.stdout.write(lines.map(line => `${line}\n`).join(''));
}
