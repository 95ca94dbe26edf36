import { delimiter, dirname } from 'node:path';

/** What somebody needs who wants to try things on a running tour. */
export type Environment = {
  readonly kubeconfig: string;
  /** Folder of this run for what kubectl remembers of the API: an earlier run's memory would be wrong. */
  readonly kubectlCache: string;
  /** The kubectl of this run; used where PATH has none. */
  readonly kubectl: string;
  readonly eventsUrl: string;
  readonly key: string;
  readonly facadeUrl: string;
  /** Public id of the workspace that Ada owns. */
  readonly tenant: string;
  /** Tokens of two people, good for a day. */
  readonly tokens: { readonly ada: string; readonly bob: string };
  readonly opsUrl: string;
  readonly receiverPort: number;
};

/** A file for the shell's `.` command. No name starts with SLUICE_: `bin/sluice` refuses settings that it does not know. */
export function formatEnvironment(environment: Environment): string {
  const values = {
    KUBECONFIG: environment.kubeconfig,
    KUBECACHEDIR: environment.kubectlCache,
    EVENTS_URL: environment.eventsUrl,
    INGRESS_KEY: environment.key,
    FACADE_URL: environment.facadeUrl,
    INGRESS_URL: new URL(environment.eventsUrl).origin,
    TENANT: environment.tenant,
    ADA: environment.tokens.ada,
    BOB: environment.tokens.bob,
    OPS_URL: environment.opsUrl,
    RECEIVER_URL: `http://127.0.0.1:${environment.receiverPort}`,
  };
  const exports = Object.entries(values).map(([name, value]) => `export ${name}='${value}'`);
  return `${exports.join('\n')}\nexport PATH="$PATH${delimiter}${dirname(environment.kubectl)}"\n`;
}

/** What to type in another terminal. */
export function formatInvitation(options: { environment: Environment; file: string; log: string }): string {
  const { environment, file, log } = options;
  return `
Everything runs. In another terminal (the first line sets what the others use, with the values of this run):

  . ${file}

  kubectl get waas -A
  kubectl describe wsub acme-orders -n globex

  curl -i "$EVENTS_URL" -H "authorization: Bearer $INGRESS_KEY" \\
    -H 'content-type: application/json' -H 'x-sluice-event-type: order.created' \\
    -H 'x-sluice-group-key: customer-42' -d '{"order": 1}'

  curl "$FACADE_URL/waas/producer/$TENANT/catalog" -H "authorization: Bearer $ADA"
  curl "$FACADE_URL/openapi.json"             # all of /waas; $FACADE_URL/docs in a browser

  curl -X POST "$RECEIVER_URL/fail?next=2"     # the next two deliveries fail
  curl "$RECEIVER_URL/received"                # what globex got, and what it answered
  curl "$OPS_URL/metrics"

The same without the file:

  export KUBECONFIG=${environment.kubeconfig}
  curl -i ${environment.eventsUrl} -H 'x-api-key: ${environment.key}' \\
    -H 'content-type: application/json' -H 'x-sluice-event-type: order.created' \\
    -H 'x-sluice-group-key: customer-42' -d '{"order": 1}'
  curl ${environment.facadeUrl}/waas/producer/${environment.tenant}/catalog \\
    -H 'authorization: Bearer ${environment.tokens.ada}'

Log of all roles: ${log}
What globex receives is told here. Ctrl-C ends everything and leaves nothing behind.
`;
}
