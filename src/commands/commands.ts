import type { COMMAND_NAMES } from '../config/config.ts';
import type { Command } from './command-line.ts';

/** Unlike roles, commands exit when they are done. Each command only loads the required modules. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  uninstall: async () => (await import('./uninstall.ts')).uninstall,
  'repair-redis': async () => (await import('./repair-redis.ts')).repairRedis,
  verify: async () => (await import('./verify.ts')).verify,
} satisfies Record<(typeof COMMAND_NAMES)[number], () => Promise<Command>>;
