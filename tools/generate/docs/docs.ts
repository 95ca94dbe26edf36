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

/** Renders the reference pages in docs/ from the same tables that are used by the code. */
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
    // The ingress role serves its own copy because it does not include the code for creating the document.
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
    `Roles are started by running \`bin/sluice <role>\`, where the role is one of ${ROLES.map(role => `\`${role}\``).join(', ')}. To run all of them in a single process, use \`bin/sluice all\`. See \`bin/sluice --help\` for a description of each role. The image doesn't contain a shell. Its entrypoint is \`node src/sluice.js <role>\`, which sets the same Node.js flags. Note that the controller and the facade use three quarters of the container's memory limit as heap unless \`NODE_OPTIONS\` includes \`--max-old-space-size\`.\n\nUse the following environment variables to configure Sluice. To detect typos, a process will fail to start if there is an unknown variable starting with \`SLUICE_\`, and suggest the most similar name. Variables which Kubernetes sets for Services in the same namespace, e.g. \`SLUICE_INGRESS_PORT=tcp://10.96.3.4:8080\`, are ignored.`,
    table(['Variable', 'Default', 'Description'], Object.entries(ENVIRONMENT).map(variableRow)),
    "If Redis does not respond, denies access, or uses settings that could cause data loss, the role waits until the problem has been resolved. You can find the reason in `/readyz` and in the log, where it is repeated once a minute. You don't need to restart the role after resolving the problem. The controller starts immediately, but it can't become the leader unless the CustomResourceDefinitions in the cluster contain all required fields. When upgrading, you should therefore apply the new CustomResourceDefinitions first.",
    "`KUBECONFIG` is used to connect to the cluster. Set this to the path of a kubeconfig, or to several paths separated by `:`. By default, Sluice uses `~/.kube/config` if this file exists, or the service account of the pod. Certificates and token files are read again every 10 seconds, so you can replace them without a restart. When using a user with an exec plugin, an auth provider, or impersonation, the process requires about 40 MiB of additional memory. The kubeconfig is also used to determine the namespace for the controller's Lease unless you set `SLUICE_NAMESPACE`. Only the controller and facade connect to Kubernetes (see [Permissions](permissions.md)).",
    "The root key is used to derive all signing secrets, invitation tokens, and encrypted values in Redis and in Subscriptions. To create a root key, run `head -c 32 /dev/urandom > root.key`. You need to provide this file to every controller, facade, and dispatcher. Make sure to back up this file.\n\nTo [rotate the root key](install.md#rotate-the-root-key), add a newer key in the same folder, using the same file name followed by a dot and a number starting at 2, such as `root.key.2`. The files are read again every 5 seconds. The leading controller selects the *first* key, which is used to encrypt and sign new values. This is the newest key that every replica has reported, but it is selected no earlier than 35 seconds after the controller became the leader. All other keys remain valid, unless you [retire the oldest one](install.md#rotate-the-root-key). If a replica has not sent a report for 90 seconds, the controller doesn't wait for this replica. If the first file is missing or a file is not valid, the replica logs the reason and continues to use its current keys. When a file is removed, its newer key is no longer used.\n\nIf a facade, dispatcher, or standby controller does not have the first key of the leading controller, it will not be ready (`RootKeyMismatch`). If a dispatcher is not ready, its work is taken over by other dispatchers. If there is no other leading controller, a controller with different keys can become the leader, and its newest key is used.",
    ...renderRedisSection(),
    '## Tracing',
    'Tracing is disabled by default, and can be configured using the standard OpenTelemetry variables, including the variables for compression and certificates. Any variable starting with `OTEL_EXPORTER_OTLP_` can also be set as `OTEL_EXPORTER_OTLP_TRACES_`, which takes precedence. For more information about traces, see [Telemetry](telemetry.md).',
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
