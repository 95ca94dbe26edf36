import type { z } from 'zod';
import { ROLES } from '../../../src/config/config.ts';
import { ENVIRONMENT } from '../../../src/config/environment.ts';
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

/** Renders the reference pages in docs/ from the tables that the code reads. */
export async function renderDocs(): Promise<GeneratedFile[]> {
  return [
    page('configuration', 'src/config/environment.ts', renderConfiguration()),
    page('kinds', 'src/api', renderKinds()),
    page('metrics', 'the roles', await renderMetrics()),
    page('permissions', 'tools/generate/rbac/permissions.ts and tools/generate/rbac/admission.ts', renderPermissions()),
    page('runbooks', 'tools/generate/alerts', renderRunbooks()),
    page('rest', 'src/facade/routes.ts', renderRest()),
    page('events', 'tools/generate/docs/event-routes.ts and src/api/sandbox.ts', renderEvents()),
    page('problems', 'src/core/problems/problems.ts', renderProblems()),
    ...renderProblemPages().map(({ code, text }) => page(`problems/${code}`, 'src/core/problems/problems.ts', text)),
    { path: 'docs/openapi.json', text: renderOpenApi() },
    // The ingress role serves its own copy: it has no code that could create the document.
    ...['docs/events-openapi.json', 'src/dataplane/ingress/openapi.json'].map(path => ({
      path,
      text: renderEventsOpenApi(),
    })),
  ];
}

function page(name: string, source: string, text: string): GeneratedFile {
  const origin = `<!-- Generated from ${source} by tools/generate/generate.ts. Change it there. -->`;
  return { path: `docs/${name}.md`, text: `${origin}\n\n${text}\n` };
}

const REDIS_SETTINGS: Row[] = [
  ['`maxmemory-policy noeviction`', 'Any other policy evicts gates and events when memory is short.'],
  ['`appendonly yes`, `appendfsync always`', 'Acknowledged events survive a restart and a power cut.'],
  [
    '`lazyfree-lazy-expire yes`, `lazyfree-lazy-server-del yes`',
    'Keys with millions of fields expire. Without these settings Redis blocks for seconds while it frees one.',
  ],
  ['`maxmemory <bytes>`', 'With a limit, ingress answers `503` before Redis is full. Without one it cannot.'],
];

/** Renders docs/configuration.md: the command's argument and every environment variable. */
function renderConfiguration(): string {
  return [
    '# Configuration',
    `\`bin/sluice <role>\` starts one role: ${ROLES.map(role => `\`${role}\``).join(', ')}; \`bin/sluice all\` starts all of them in one process. \`bin/sluice --help\` describes them. An image without a shell starts \`node src/sluice.ts <role>\`, which sets the same flags of Node: controller and facade use three quarters of the container's memory limit as heap, unless \`NODE_OPTIONS\` has \`--max-old-space-size\`. Environment variables configure everything else. If a variable starts with \`SLUICE_\` and is not listed here, the process does not start and suggests the nearest name. Variables that Kubernetes sets for the Services of a namespace, such as \`SLUICE_INGRESS_PORT=tcp://10.96.3.4:8080\`, are ignored.`,
    table(['Variable', 'Default', 'Meaning'], Object.entries(ENVIRONMENT).map(variableRow)),
    'A role waits while Redis does not answer, or has settings that would lose data. `/readyz` and a log line a minute give the reason. The role starts when the problem is solved, without a restart. The controller starts at once, but leads only when the CustomResourceDefinitions in the cluster have all fields that it writes. Before you start a new version, apply its CustomResourceDefinitions.',
    'Sluice connects to the cluster of `KUBECONFIG`, else with the service account of the pod. Only the controller and the facade talk to Kubernetes; see their [permissions](permissions.md).',
    'All signing secrets, invitation tokens and sealed values in Redis derive from the root key. Create one file (`head -c 32 /dev/urandom > root.key`), back it up, and give it to every controller, facade and dispatcher. A facade, dispatcher or standby controller whose key differs from that of the leading controller is not ready (`RootKeyMismatch`). Such a dispatcher leaves its work to the others. Such a controller still leads when no other does, and then its key applies.',
    '## Redis',
    'Use Redis 7.0 or newer: one server, or a Cluster. Set on every node, including replicas:',
    table(['Setting', 'Why'], REDIS_SETTINGS),
    'A role is not ready while a master has another `maxmemory-policy`. A role turns on lazy freeing by itself (`CONFIG SET`), which lasts until Redis restarts. If `CONFIG SET` is refused, as in some managed services, a role is not ready until you set both lazy freeing settings. If `CONFIG` is not allowed at all, a role cannot check the settings and logs a warning at its start.',
    '## Tracing',
    'The standard variables of OpenTelemetry configure tracing, which is off by default: see [telemetry](telemetry.md). Each `OTEL_EXPORTER_OTLP_…` also exists as `OTEL_EXPORTER_OTLP_TRACES_…` for traces alone, which takes precedence. The variables for compression and certificates work as specified.',
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
