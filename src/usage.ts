import type { Role } from './config/config.ts';

/** Role descriptions for `sluice --help`. */
const ROLE_MEANINGS: Readonly<Record<Role, string>> = {
  controller: 'reconciles custom resources and writes routes and gates to Redis',
  facade: 'serves the REST API at /waas',
  ingress: 'accepts events at POST /events/{tenant}/{queue}',
  router: 'moves accepted events to the inboxes of subscriptions',
  dispatcher: 'delivers events from inboxes to endpoints',
};

const HELP = `Usage: sluice <role>

Roles:
${Object.entries(ROLE_MEANINGS)
  .map(([role, meaning]) => `  ${role.padEnd(12)}${meaning}`)
  .join('\n')}
  ${'all'.padEnd(12)}runs all roles in one process; the facade only with SLUICE_OIDC_ISSUERS

Options:
  --help      print this text
  --version   print the version

Environment variables configure everything else: docs/configuration.md lists them.
`;

/** Returns the text requested by `argv`, or undefined if a role should be run. */
export function textToPrint(argv: readonly string[], version: string): string | undefined {
  if (argv.length !== 1) return undefined;
  if (argv[0] === '--help' || argv[0] === '-h') return HELP;
  return argv[0] === '--version' ? `${version}\n` : undefined;
}
