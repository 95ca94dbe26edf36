import type { Role } from './config/config.ts';

/** What each role does, for `sluice --help`. */
const ROLE_MEANINGS: Readonly<Record<Role, string>> = {
  controller: 'reconciles custom resources and writes routes and gates into Redis',
  facade: 'serves the REST interface /waas',
  ingress: 'accepts events at POST /events/{tenant}/{queue}',
  router: 'moves accepted events into the inboxes of subscriptions',
  dispatcher: 'delivers the events of inboxes to endpoints',
};

const HELP = `Usage: sluice <role>

Roles:
${Object.entries(ROLE_MEANINGS)
  .map(([role, meaning]) => `  ${role.padEnd(12)}${meaning}`)
  .join('\n')}
  ${'all'.padEnd(12)}runs all of them in one process; the facade only with SLUICE_OIDC_ISSUERS

Options:
  --help      prints this text
  --version   prints the version

Environment variables configure everything else: docs/configuration.md lists them.
`;

/** Returns what `argv` asks to print; undefined when it asks to run. */
export function textToPrint(argv: readonly string[], version: string): string | undefined {
  if (argv.length !== 1) return undefined;
  if (argv[0] === '--help' || argv[0] === '-h') return HELP;
  return argv[0] === '--version' ? `${version}\n` : undefined;
}
