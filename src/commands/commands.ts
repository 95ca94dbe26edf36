import type { COMMAND_NAMES } from '../config/config.ts';

/** Runs a command with its own arguments, and returns the exit code. */
export type Command = (argv: readonly string[], env: Readonly<Record<string, string | undefined>>) => Promise<number>;

/** Commands that terminate, unlike roles. Each command only loads the modules it needs. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  uninstall: async () => (await import('./uninstall.ts')).uninstall,
  verify: async () => (await import('./verify.ts')).verify,
} satisfies Record<(typeof COMMAND_NAMES)[number], () => Promise<Command>>;
