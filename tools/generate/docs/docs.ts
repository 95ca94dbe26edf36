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
import { renderRedisSection } from './redis.ts';
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

/** Renders docs/configuration.md: the command's argument and every environment variable. */
function renderConfiguration(): string {
  return [
    '# Configuration',
    `Roles are started by running \`bin/sluice <role>\`, where the role is one of ${ROLES.map(role => `\`${role}\``).join(', ')}. To run all of them in a single process, use \`bin/sluice all\`. See \`bin/sluice --help\` for a description of each role. The image has no shell: its entrypoint is \`node src/sluice.js <role>\`, which sets the same Node.js flags. Note that the controller and facade use three quarters of the container's memory limit as heap, unless \`--max-old-space-size\` is included in \`NODE_OPTIONS\`.\n\nThe environment variables below can be used to configure Sluice. To guard against typos, a process will refuse to start if it finds an unknown variable starting with \`SLUICE_\`, and suggest the most similar name. Variables set by Kubernetes for Services in the same namespace, e.g. \`SLUICE_INGRESS_PORT=tcp://10.96.3.4:8080\`, are ignored.`,
    table(['Variable', 'Default', 'Description'], Object.entries(ENVIRONMENT).map(variableRow)),
    'A role will wait for as long as Redis does not respond, denies access, or has settings that could cause data loss. The reason can be found in `/readyz` as well as in the log, where it is repeated once a minute. No restart is needed after resolving the problem. The controller, on the other hand, starts immediately, but cannot become the leader unless the CustomResourceDefinitions in the cluster contain all fields that it writes. When upgrading, you should therefore apply the new CustomResourceDefinitions first.',
    "`KUBECONFIG` is used to connect to the cluster. Set it to the path of a kubeconfig, or to several paths joined by `:`. If not set, Sluice uses `~/.kube/config` if it exists, and the pod's service account otherwise. Certificates and token files are read again every 10 seconds, so you can replace them without a restart. A user with an exec plugin, an auth provider, or impersonation needs about 40 MiB more memory. It also determines the namespace of the controller's Lease unless you set `SLUICE_NAMESPACE`. Only the controller and facade connect to Kubernetes (see [Permissions](permissions.md)).",
    'The root key is used to derive all signing secrets, invitation tokens, and encrypted values in Redis and in Subscriptions. You can create one using `head -c 32 /dev/urandom > root.key`. This file must be provided to every controller, facade, and dispatcher, and should be backed up.\n\nTo [rotate the root key](install.md#rotate-the-root-key), add a newer one beside it, in a file with the same name followed by a dot and a number from 2, such as `root.key.2`. The files are read again every 5 seconds. The leading controller chooses the *first* key, which encrypts and signs what is new: the newest one, as soon as every replica has reported that it has it, and no earlier than 35 seconds after it became the leader. All other keys remain valid. A replica without a report for 90 seconds is not waited for. If the first file is missing, or if a file cannot be used, the replica logs the reason, and keeps the keys that it has. A newer key is dropped as soon as its file has been removed.\n\nA facade, dispatcher, or standby controller that does not have the first key of the leading controller will not be ready (`RootKeyMismatch`). The other dispatchers take over the work of a dispatcher that is not ready. If no other controller is leading, a controller with different keys becomes the leader, and its newest key applies.',
    ...renderRedisSection(),
    '## Tracing',
    'Tracing (disabled by default) is configured using the standard OpenTelemetry variables, including those for compression and certificates. Any variable starting with `OTEL_EXPORTER_OTLP_` can also be set as `OTEL_EXPORTER_OTLP_TRACES_`, which takes precedence. See [Telemetry](telemetry.md) for what is being traced.',
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
