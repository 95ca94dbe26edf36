import type { z } from 'zod';
import { ENVIRONMENT, ROLES } from '../../../src/config/config.ts';
import { TRACING_ENVIRONMENT } from '../../../src/config/tracing-environment.ts';
import { renderRunbooks } from '../alerts/alerts.ts';
import type { GeneratedFile } from '../generate.ts';
import { type Row, table } from '../markdown.ts';
import { renderEvents, renderEventsOpenApi } from './events.ts';
import { renderKinds } from './kinds.ts';
import { renderMetrics } from './metrics.ts';
import { renderPermissions } from './permissions.ts';
import { renderProblemPages, renderProblems } from './problems.ts';
import { renderOpenApi, renderRest } from './rest.ts';

/** The reference pages in docs/, from what the code itself reads. */
export async function renderDocs(): Promise<GeneratedFile[]> {
  return [
    page('configuration', 'src/config/config.ts', renderConfiguration()),
    page('kinds', 'src/api', renderKinds()),
    page('metrics', 'the roles', await renderMetrics()),
    page('permissions', 'tools/generate/rbac/permissions.ts and tools/generate/rbac/admission.ts', renderPermissions()),
    page('runbooks', 'tools/generate/alerts', renderRunbooks()),
    page('rest', 'src/facade/routes.ts', renderRest()),
    page('events', 'tools/generate/docs/event-routes.ts and src/api/sandbox.ts', renderEvents()),
    page('problems', 'src/core/problems/problems.ts', renderProblems()),
    ...renderProblemPages().map(({ code, text }) => page(`problems/${code}`, 'src/core/problems/problems.ts', text)),
    { path: 'docs/openapi.json', text: renderOpenApi() },
    { path: 'docs/events-openapi.json', text: renderEventsOpenApi() },
  ];
}

function page(name: string, source: string, text: string): GeneratedFile {
  const origin = `<!-- Generated from ${source} by tools/generate/generate.ts. Change it there. -->`;
  return { path: `docs/${name}.md`, text: `${origin}\n\n${text}\n` };
}

const REDIS_SETTINGS: Row[] = [
  ['`maxmemory-policy noeviction`', 'Any other policy removes gates and events when memory is short.'],
  ['`appendonly yes`, `appendfsync always`', 'Acknowledged events survive a restart and a power cut.'],
  [
    '`lazyfree-lazy-expire yes`, `lazyfree-lazy-server-del yes`',
    'Keys with millions of fields expire. Without these settings Redis stands still for seconds while it frees one.',
  ],
  ['`maxmemory <bytes>`', 'Ingress answers `503` before Redis is full. Without a limit it cannot know.'],
];

/** docs/configuration.md: the command's argument and every environment variable. */
function renderConfiguration(): string {
  return [
    '# Configuration',
    `\`bin/sluice <role>\` starts one role: ${ROLES.map(role => `\`${role}\``).join(', ')}; \`bin/sluice all\` starts all of them in one process. \`bin/sluice --help\` says what they are. An image without a shell starts \`node src/sluice.ts <role>\`, which sets the same flags of Node: three quarters of the memory limit of the container are the heap of controller and facade, unless \`NODE_OPTIONS\` has \`--max-old-space-size\`. Everything else is said by environment variables. A variable that starts with \`SLUICE_\` and is not listed here stops the start, with the name that was probably meant. The variables that Kubernetes sets for the Services of a namespace, such as \`SLUICE_INGRESS_PORT=tcp://10.96.3.4:8080\`, are ignored.`,
    table(['Variable', 'Default', 'Meaning'], Object.entries(ENVIRONMENT).map(variableRow)),
    'A role waits for a Redis that does not answer, or whose settings would lose data: `/readyz` and a log line a minute say what is wrong, and the role starts once it is right, without a restart of its process. The controller starts at once, and leads once the CustomResourceDefinitions in the cluster have all fields that it writes: apply those of a new version before its processes start.',
    'The cluster is found by `KUBECONFIG`, else by the service account of the pod. Only the controller and the facade talk to Kubernetes; what each of them needs is on the page about [permissions](permissions.md).',
    'The root key signs deliveries, makes the tokens of invitations and seals what lies in Redis: make one file (`head -c 32 /dev/urandom > root.key`), keep it, and give the same to every controller, facade and dispatcher. A facade or dispatcher with another key than the controller is not ready (`RootKeyMismatch`), and such a dispatcher leaves what is due to the others.',
    '## Redis',
    'Redis 7.0 or newer: one server, or a Cluster. Set on every node, replicas as well:',
    table(['Setting', 'Why'], REDIS_SETTINGS),
    'A role is not ready while a master has another `maxmemory-policy`. A role turns lazy freeing on by itself (`CONFIG SET`), which lasts until Redis restarts. Where `CONFIG SET` is refused, as in some managed services, a role is not ready until both settings are made; where `CONFIG` is not allowed at all, a role cannot see them and warns at its start.',
    '## Tracing',
    "OpenTelemetry's own variables say where spans go to, if anywhere: see [telemetry](telemetry.md). Each `OTEL_EXPORTER_OTLP_…` can be said for traces alone, as `OTEL_EXPORTER_OTLP_TRACES_…`, which comes first; those for compression and certificates are taken as the specification says.",
    table(
      ['Variable', 'Default', 'Meaning'],
      Object.entries(TRACING_ENVIRONMENT).map(([name, { fallback, meaning }]) => [
        `\`${name}\``,
        fallback === '' ? '' : `\`${fallback}\``,
        meaning,
      ]),
    ),
  ].join('\n\n');
}

function variableRow([name, schema]: [string, z.ZodType]): Row {
  const fallback = schema.safeParse(undefined).data;
  const shown = typeof fallback === 'string' || typeof fallback === 'number' ? `\`${fallback}\`` : '';
  return [`\`${name}\``, shown, schema.description ?? ''];
}
