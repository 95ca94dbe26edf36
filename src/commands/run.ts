import { ConfigError } from '../config/config.ts';
import type { Command } from './command-line.ts';
import { COMMANDS } from './commands.ts';

/**
 * Runs the command specified by the first argument. The exit code is 1 if it fails, with the reason on standard error.
 */
export async function runCommand([name = '', ...argv]: readonly string[], env: Parameters<Command>[1]): Promise<void> {
  try {
    const command = await COMMANDS[name]?.();
    process.exitCode = await command?.(argv, env);
  } catch (error) {
    const { message } = error as Error;
    process.stderr.write(error instanceof ConfigError ? `${message}\n` : `sluice ${name} failed: ${message}\n`);
    process.exitCode = 1;
  }
}
