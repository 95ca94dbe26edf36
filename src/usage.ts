import type { Role } from './config/config.ts';

/** Role descriptions for `sluice --help`. */
const ROLE_MEANINGS: Readonly<Record<Role, string>> = {
  controller: 'reconciles custom resources and writes routes and gates to Redis',
  facade: 'serves the REST API at /waas',
  ingress: 'accepts events at POST /events/{tenant}/{queue} and routes them to subscriptions',
  dispatcher: 'delivers events to endpoints',
};

/** Command descriptions for `sluice --help`. */
const COMMAND_MEANINGS: Readonly<Record<string, string>> = {
  uninstall: 'removes the finalizers from all custom resources so that they can be deleted without a controller',
  'repair-redis': 'removes an incomplete write from the append-only file of a Redis that was killed',
  verify: 'publishes an event in the sandbox and checks that the event is delivered',
};

const list = (meanings: Readonly<Record<string, string>>) =>
  Object.entries(meanings)
    .map(([name, meaning]) => `  ${name.padEnd(14)}${meaning}`)
    .join('\n');

const HELP = `Usage: sluice <role or command>

Roles:
${list(ROLE_MEANINGS)}
  ${'all'.padEnd(14)}runs all roles in one process; the facade only with SLUICE_OIDC_ISSUERS

Commands:
${list(COMMAND_MEANINGS)}

Options:
  --help      print this text
  --version   print the version

Environment variables configure everything else: docs/configuration.md lists them.
`;

/** Returns the text requested by `argv`, or undefined if a role should be started. */
export function textToPrint(argv: readonly string[], version: string): string | undefined {
  if (argv.length !== 1) return undefined;
  if (argv[0] === '--help' || argv[0] === '-h') return HELP;
  return argv[0] === '--version' ? `${version}\n` : undefined;
}
