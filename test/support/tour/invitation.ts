import { delimiter, dirname } from 'node:path';

/** Settings of the user's shell for a running tour. */
export type Environment = {
  readonly kubeconfig: string;
  /** The cache folder of kubectl for this run. The cache of an earlier run would be wrong. */
  readonly kubectlCache: string;
  /** This run's kubectl, which is used if there is none on the PATH. */
  readonly kubectl: string;
  readonly eventsUrl: string;
  readonly key: string;
  readonly facadeUrl: string;
  /** The issuer of the tokens. */
  readonly issuer: string;
  /** The public ids of the workspaces that Ada owns: acme, and the empty workspace of the REST tour. */
  readonly acme: string;
  readonly tenant: string;
  /** The public ids of the workspace that Bob owns, and of the Integration by which acme grants access to it. */
  readonly globex: string;
  readonly integration: string;
  /** The tokens of two people, which are valid for a day. */
  readonly tokens: { readonly ada: string; readonly bob: string };
  readonly opsUrl: string;
  readonly receiverPort: number;
};

/**
 * Renders a file for the `.` command of the shell. Names do not start with SLUICE_ because `bin/sluice` refuses unknown
 * settings.
 */
export function formatEnvironment(environment: Environment): string {
  const values = {
    KUBECONFIG: environment.kubeconfig,
    KUBECACHEDIR: environment.kubectlCache,
    EVENTS_URL: environment.eventsUrl,
    INGRESS_KEY: environment.key,
    FACADE_URL: environment.facadeUrl,
    INGRESS_URL: new URL(environment.eventsUrl).origin,
    ISSUER: environment.issuer,
    ACME_TENANT: environment.acme,
    GLOBEX_TENANT: environment.globex,
    GLOBEX_INTEGRATION: environment.integration,
    TENANT: environment.tenant,
    ADA: environment.tokens.ada,
    BOB: environment.tokens.bob,
    OPS_URL: environment.opsUrl,
    RECEIVER_URL: `http://127.0.0.1:${environment.receiverPort}`,
  };
  const exports = Object.entries(values).map(([name, value]) => `export ${name}=${quoted(value)}`);
  return `${exports.join('\n')}\nexport PATH="$PATH"${quoted(delimiter + dirname(environment.kubectl))}\n`;
}

/** Quotes any text as one word for the shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Quotes a word only if necessary. */
function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : quoted(text);
}

/** Renders the commands to run in another terminal. */
export function formatInvitation(options: { environment: Environment; file: string; log: string }): string {
  const { environment, file, log } = options;
  return `
Everything runs. In another terminal (the first line sets what the others use, with the values of this run):

  . ${word(file)}

  kubectl get waas -A
  kubectl describe wsub acme-orders -n globex

  curl -i "$EVENTS_URL" -H "authorization: Bearer $INGRESS_KEY" \\
    -H 'content-type: application/json' -H 'x-sluice-event-type: order.created' \\
    -H 'x-sluice-group-key: customer-42' -d '{"order": 1}'

  curl "$FACADE_URL/waas/producer/$ACME_TENANT/catalog" -H "authorization: Bearer $ADA"

  curl -X POST "$RECEIVER_URL/fail?next=2"     # the next two deliveries fail
  curl "$RECEIVER_URL/received"                # what globex got, and what it answered
  curl "$OPS_URL/metrics"

The same without the file:

  export KUBECONFIG=${word(environment.kubeconfig)}
  curl -i ${environment.eventsUrl} -H 'x-api-key: ${environment.key}' \\
    -H 'content-type: application/json' -H 'x-sluice-event-type: order.created' \\
    -H 'x-sluice-group-key: customer-42' -d '{"order": 1}'
  curl ${environment.facadeUrl}/waas/producer/${environment.acme}/catalog \\
    -H 'authorization: Bearer ${environment.tokens.ada}'

Events (POST):        ${environment.eventsUrl}
Sandbox (POST):       ${environment.eventsUrl.replace('/events/', '/events/sandbox/')}
REST, in a browser:   ${environment.facadeUrl}/docs
REST, for programs:   ${environment.facadeUrl}/openapi.json
Identity provider:    ${environment.issuer}/.well-known/openid-configuration
Metrics:              ${environment.opsUrl}/metrics
Health:               ${environment.opsUrl}/readyz
What globex got:      http://127.0.0.1:${environment.receiverPort}/received
Log of all roles:     ${log}

What globex receives is shown here. Ctrl-C stops everything and leaves nothing behind.
`;
}
