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
  [
    '`maxmemory-policy noeviction`',
    'With any other policy, Redis removes gates and events when it runs out of memory.',
  ],
  ['`appendonly yes`, `appendfsync always`', 'Acknowledged events are not lost after a restart or a power failure.'],
  [
    '`lazyfree-lazy-expire yes`, `lazyfree-lazy-server-del yes`',
    'Some keys have millions of fields and expire. Without these settings, Redis can block for several seconds when it frees these keys.',
  ],
  ['`maxmemory <bytes>`', 'If you set a limit, ingress responds with `503` before Redis runs out of memory.'],
];

/** Renders docs/configuration.md: the command's argument and every environment variable. */
function renderConfiguration(): string {
  return [
    '# Configuration',
    `To start a role, run \`bin/sluice <role>\`, where the role is one of ${ROLES.map(role => `\`${role}\``).join(', ')}. To start all roles in one process, run \`bin/sluice all\`. For a description of the roles, run \`bin/sluice --help\`. If your image does not contain a shell, you can run \`node src/sluice.ts <role>\`, which sets the same Node.js flags. The controller and the facade use three quarters of the container's memory limit as heap, unless \`NODE_OPTIONS\` contains \`--max-old-space-size\`.\n\nYou can configure Sluice with the following environment variables. If a variable starts with \`SLUICE_\` and is not in this list, the process does not start and suggests the most similar name. Sluice ignores the variables that Kubernetes sets for Services in the same namespace, such as \`SLUICE_INGRESS_PORT=tcp://10.96.3.4:8080\`.`,
    table(['Variable', 'Default', 'Description'], Object.entries(ENVIRONMENT).map(variableRow)),
    'If Redis does not respond, or if its settings could cause data loss, a role waits. You can find the reason in `/readyz` and in the log, which repeats the message once a minute. After you resolve the problem, the role starts without a restart. The controller starts immediately, but it only becomes the leader if the CustomResourceDefinitions in the cluster contain all fields that it writes. Before you upgrade to a new version, apply its CustomResourceDefinitions.',
    'Sluice uses `KUBECONFIG` to connect to the cluster. If this variable is not set, Sluice uses the service account of the pod. Only the controller and the facade connect to Kubernetes. For more information, see [Permissions](permissions.md).',
    'Sluice derives all signing secrets, invitation tokens and encrypted values in Redis from the root key. To create the file, run `head -c 32 /dev/urandom > root.key`. You should back up this file, and you must provide it to every controller, facade and dispatcher. If the key of a facade, a dispatcher or a standby controller is different from the key of the leading controller, it is not ready (`RootKeyMismatch`). Other dispatchers take over the work of such a dispatcher. If no other controller leads, such a controller becomes the leader, and its key applies.',
    '## Redis',
    'Sluice requires Redis 7.0 or later, either as a single server or as a Redis Cluster. You must configure the following settings on every node, including replicas:',
    table(['Setting', 'Why'], REDIS_SETTINGS),
    'If a master has a different `maxmemory-policy`, the role is not ready. Sluice uses `CONFIG SET` to enable lazy freeing, and this setting is lost when Redis restarts. Some managed services do not allow `CONFIG SET`. In this case, the role is not ready until you enable both lazy freeing settings. If your service does not allow `CONFIG`, the role cannot check the settings and logs a warning when it starts.',
    '## Tracing',
    'You can configure tracing with the standard OpenTelemetry variables. By default, tracing is disabled. For more information, see [Telemetry](telemetry.md). For each variable that starts with `OTEL_EXPORTER_OTLP_`, you can also set a variable that starts with `OTEL_EXPORTER_OTLP_TRACES_`, which takes precedence. Sluice also supports the standard variables for compression and certificates.',
    table(
      ['Variable', 'Default', 'Description'],
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
