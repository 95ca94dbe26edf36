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
    `Use this page to look up an environment variable and how to set up [Redis](#redis), the [root key](#root-key), and [tracing](#tracing). To start a role, use \`bin/sluice <role>\`, where the role is one of ${ROLES.map(role => `\`${role}\``).join(', ')}. To start all of them in one process, use \`bin/sluice all\`. The image has no shell. Its entrypoint is \`node src/sluice.js <role>\`.`,
    [
      '**Helm**: Set the [values of the chart](../charts/sluice/README.md) instead. For a variable without a value, use `extraEnv` of the role.',
      '**Typos**: If there is an unknown variable starting with `SLUICE_`, a process suggests the most similar name and does not start. Variables that Kubernetes sets for Services in the same namespace (for example `SLUICE_INGRESS_PORT=tcp://10.96.3.4:8080`) are ignored.',
      "**Memory**: By default, the controller and the facade use three quarters of the container's memory limit as heap. To change this, include `--max-old-space-size` in `NODE_OPTIONS`.",
    ]
      .map(line => `- ${line}`)
      .join('\n'),
    '## Variables',
    ...variableTables(),
    '### While a dependency is unavailable',
    "If Redis does not respond, denies access, or has settings that could lose data, a role waits until you have resolved the problem, and then continues without a restart. You can find the reason in `/readyz` and once a minute in the log. The controller can't become the leader unless the CustomResourceDefinitions in the cluster have all required fields. Apply the CustomResourceDefinitions of the new version before an upgrade.",
    '## Connection to Kubernetes',
    'Only the controller and the facade connect to Kubernetes (see [Permissions](permissions.md)):',
    [
      "**Kubeconfig**: Set `KUBECONFIG` to the path of a kubeconfig, or to several paths separated by `:`. The default is `~/.kube/config` (or the service account of the pod if this file does not exist). The kubeconfig also determines the Lease's namespace unless you set `SLUICE_NAMESPACE`.",
      '**Credentials**: Certificates and token files are reloaded every 10 seconds, so you can replace them without a restart. A user with an exec plugin or an auth provider takes about 40 MiB of additional memory.',
      '**Proxies**: To connect through an HTTP proxy, set `proxy-url` of the cluster in the kubeconfig. Unlike kubectl, Sluice ignores `HTTPS_PROXY` and `NO_PROXY`.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
    '## Root key',
    'All signing secrets, invitation tokens, and encrypted values in Redis and in Subscriptions are derived from the root key. To create it, use `head -c 32 /dev/urandom > root.key`. Provide the root key to every controller, facade, and dispatcher, and back it up.',
    'To [rotate the root key](operations.md#rotate-the-root-key), add a newer key in the same folder with a number starting at 2 (such as `root.key.2`). The leading controller selects the *first* key. This key encrypts and signs new values:',
    [
      'The first key is the newest key that every replica has reported. A replica without a report for 90 seconds does not count. After a change of the leader, the selection takes at least 35 seconds.',
      'All other keys remain valid unless you [retire the oldest one](operations.md#rotate-the-root-key). If you remove the file of a key, the key is no longer used.',
      'If the first file is missing or a file is not valid, the replica logs the reason and keeps using its current keys.',
      'A facade, dispatcher, or standby controller without the first key is not ready (`RootKeyMismatch`). Other dispatchers take over the work of a dispatcher that is not ready.',
      'If no controller leads, a controller with different keys can become the leader. Its newest key is then used.',
    ]
      .map(line => `- ${line}`)
      .join('\n'),
    ...renderRedisSection(),
    '## Tracing',
    'Tracing is disabled by default. To enable it, use the standard OpenTelemetry variables (including those for compression and certificates). `OTEL_EXPORTER_OTLP_TRACES_…` takes precedence over `OTEL_EXPORTER_OTLP_…`. For more information about the traces, see [Telemetry](telemetry.md).',
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

/** The subjects of the variables. Each variable belongs to the first one that matches. */
const SUBJECTS: readonly (readonly [title: string, names: RegExp])[] = [
  ['Connection to Redis', /^SLUICE_REDIS_/],
  ['Ports and certificates', /_(PORT|HOST|CERT_FILE)$|^SLUICE_(INGRESS|FACADE)_KEY_FILE$/],
  ['Kubernetes and the root key', /^SLUICE_(ROOT_KEY_FILE|SECRETS_ROLE|WORKSPACE_QUOTA|NAMESPACE|INSTANCE)$/],
  ['Access tokens', /^SLUICE_OIDC_/],
  ['Endpoints', /^SLUICE_(ALLOWED|REFUSED|ENDPOINT)_/],
  ['Limits', /_LIMITS?$|^SLUICE_(TRUSTED_PROXIES|QUEUE_MAX_BYTES)$/],
  ['Invitations', /^SLUICE_(SMTP|INVITATION)_/],
  ['Logs and processes', /^SLUICE_(FACADE_DOCS|AUDIT_FILE|LOG_LEVEL|SHUTDOWN_DELAY_SECONDS)$/],
];

/** @throws Error if a variable has no subject */
function variableTables(): readonly string[] {
  const subjectOf = (variable: string) => {
    const found = SUBJECTS.find(([, names]) => names.test(variable));
    if (found === undefined) throw new Error(`${variable} has no subject in docs/configuration.md: add it to SUBJECTS`);
    return found;
  };
  const bySubject = Map.groupBy(Object.entries(ENVIRONMENT), ([name]) => subjectOf(name));
  return SUBJECTS.flatMap(subject => [
    `### ${subject[0]}`,
    table(['Variable', 'Default', 'Description'], (bySubject.get(subject) ?? []).map(variableRow)),
  ]);
}

function variableRow([name, schema]: [string, z.ZodType]): Row {
  const fallback = schema.safeParse(undefined).data;
  const shown =
    (typeof fallback === 'string' && fallback !== '') || typeof fallback === 'number' ? `\`${fallback}\`` : '';
  return [`\`${name}\``, shown, schema.description ?? ''];
}
