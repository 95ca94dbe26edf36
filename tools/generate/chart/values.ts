import { z } from 'zod';
import { DEFAULT_INSTANCE, INSTANCE } from '../../../src/api/instance.ts';
import { LIMIT_NAMES } from '../../../src/api/kinds/account-limits.ts';
import { ENVIRONMENT } from '../../../src/config/environment.ts';
import { SIGNING_ALGORITHMS } from '../../../src/config/oidc-environment.ts';
import { TRACING_ENVIRONMENT } from '../../../src/config/tracing-environment.ts';
import { ALL_IN_ONE, WORKLOADS, type Workload } from '../roles.ts';
import { list, openList, openObject, ports, section, text, textObject } from './value-types.ts';

/** The variables that are mentioned in descriptions, and the values that set them. */
const VALUE_OF: Readonly<Record<string, string>> = {
  SLUICE_ALLOWED_NETWORKS: 'allowedNetworks',
  SLUICE_REDIS_SENTINEL_PASSWORD_FILE: 'redis.sentinel.passwordSecret',
  SLUICE_SMTP_URL: 'smtp.url',
  SLUICE_TRUSTED_PROXIES: 'trustedProxies',
};

/** Returns the description of a variable, using the terms of the chart. */
const meaningOf = (variable: keyof typeof ENVIRONMENT) =>
  (ENVIRONMENT[variable].description ?? '')
    .replace(/^A comma-separated list of /, 'A list of ')
    .replace('443,8443', '[443, 8443]')
    .replace(', or none if', ', or [none] if')
    .replace(' Set it for both the controller and the dispatcher.', '')
    .replace(
      ' You can separate several claims by commas, one of which must match.',
      ' One of the claims in the list must match.',
    )
    .replaceAll(/SLUICE_[A-Z_]+/g, name => VALUE_OF[name] ?? name);
/** Returns the description of a variable for tracing. The chart has no value for the next variable. */
const tracingMeaning = (variable: string) =>
  (TRACING_ENVIRONMENT[variable]?.meaning ?? '').replace(
    'Tracing is disabled if neither this variable nor the next variable is set.',
    'By default, tracing is disabled.',
  );

const eventRate = (fallback: number, variable: keyof typeof ENVIRONMENT) =>
  z.int().min(0).max(1_000_000).default(fallback).describe(meaningOf(variable));

/** Account limits by name. The roles check the numbers. Helm names the wrong path for a key in `propertyNames`. */
const accountLimits = (description: string) =>
  openObject(description).meta({
    description,
    patternProperties: { [`^(${LIMIT_NAMES.join('|')})$`]: {} },
    additionalProperties: false,
  });

/** A network in CIDR notation, e.g. 10.0.0.0/8. The roles check the numbers. */
const NETWORK = /^[0-9a-fA-F.:]+\/[0-9]{1,3}$/;

/** The name of the installation. Empty for the default installation. */
const INSTANCE_OR_DEFAULT = new RegExp(`^(${INSTANCE.source.slice(1, -1)})?$`);

/** The format of a registry, e.g. `registry.example.com:5000/team`. */
export const REGISTRY = /^[a-z0-9.-]+(:[0-9]+)?(\/[a-z0-9._-]+)*$/;

const image = section('The Sluice image.', {
  registry: text(
    'The registry host, including the port if required, e.g. registry.example.com. This value is required because there is no default.',
    '',
    { regex: new RegExp(`^(${REGISTRY.source.slice(1, -1)})?$`), rule: 'must be a host, without https://' },
  ),
  repository: text('The repository in the registry.', 'sluice'),
  tag: text('The image tag. Defaults to the chart version.'),
  digest: text('The image digest, e.g. sha256:4bf0…. This value takes precedence over the tag.', '', {
    regex: /^(sha256:[0-9a-f]{64})?$/,
    rule: 'must be sha256: and 64 hexadecimal digits',
  }),
  pullPolicy: z.enum(['IfNotPresent', 'Always', 'Never']).default('IfNotPresent').describe('When to pull the image.'),
});

const expose = section('Access from outside of the cluster.', {
  type: z
    .enum(['None', 'Ingress', 'HTTPRoute'])
    .default('None')
    .describe('The object to create: None, Ingress, or HTTPRoute (Gateway API).'),
  host: text('The host name, which is required unless the type is None.'),
  annotations: textObject('The annotations of the object.'),
  className: text('The class of an Ingress. Defaults to the default class of the cluster.'),
  tlsSecret: text('The name of the Secret containing the certificate of an Ingress.'),
  parentRefs: openList('The Gateways of an HTTPRoute, e.g. [{name: public, namespace: gateways}].'),
});

const service = section('The Service of the role.', {
  type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']).default('ClusterIP').describe('The type of the Service.'),
  port: z.int().min(1).max(65_535).default(80).describe('The port of the Service.'),
  annotations: textObject('The annotations of the Service.'),
  extraSpec: openObject(
    'More fields of spec, e.g. {externalTrafficPolicy: Local}, which preserves the addresses of clients.',
  ),
});

const issuerRef = (certificate: string) =>
  openObject(
    `The cert-manager issuer, e.g. {name: internal, kind: ClusterIssuer}. If set, a Certificate is created for ${certificate}.`,
  );

const tls = section('The certificate used by the role itself. If this is not set, the role serves plain HTTP.', {
  secretName: text(
    'The name of the Secret containing the certificate in the keys tls.crt and tls.key. The role then only accepts TLS, so also set service.port to 443, and configure an Ingress or a Gateway to connect with TLS. New certificates are used within two minutes, without a restart.',
  ),
  issuerRef: issuerRef('this Secret, which includes the names of the Service and expose.host'),
});

const nodes = (pods: 'pod' | 'pods') => ({
  nodeSelector: textObject('Labels of the nodes to run on.'),
  tolerations: openList(`The tolerations of the ${pods}.`),
});

const isFacade = ({ name }: Workload) => name === 'facade';

function workload(of: Workload) {
  return section(of.description, {
    ...(isFacade(of)
      ? {
          enabled: z
            .boolean()
            .default(true)
            .describe('Whether to install the REST API, which requires oidc.issuers and oidc.audience.'),
        }
      : {}),
    replicas: z
      .int()
      .min(0)
      .default(of.replicas)
      .describe('The number of pods. Set it to null if a HorizontalPodAutoscaler changes the number.'),
    resources: openObject(
      'The resource requests and limits. The controller and the facade use three quarters of limits.memory as heap.',
      of.resources,
    ),
    maxUnavailable: z
      .union([z.int().min(0), z.string()])
      .default(1)
      .describe('The number or percentage of pods that can be evicted at the same time.'),
    podLabels: textObject('The labels of the pods.'),
    podAnnotations: textObject('The annotations of the pods.'),
    ...nodes('pods'),
    affinity: openObject('The affinity of the pods, in addition to spreading them over hosts and zones.'),
    priorityClassName: text('The priority class of the pods.'),
    extraEnv: openList('Environment variables, e.g. [{name: NODE_EXTRA_CA_CERTS, value: /etc/ca/ca.crt}].'),
    extraVolumes: openList('The volumes of the pods.'),
    extraVolumeMounts: openList('The mounts for these volumes.'),
    ...(of.name !== 'all' && of.serves.length > 0 ? { service, tls, expose } : {}),
  });
}

const redis = section('Redis. You need to set one of url, existingSecret, and embedded.enabled.', {
  url: text(meaningOf('SLUICE_REDIS_URL')),
  existingSecret: text('The name of the Secret containing this URL in the key url.'),
  passwordSecret: text(
    'The name of the Secret containing the password in the key password, which can be used instead of including it in the URL. You can change the password without a restart.',
  ),
  usersSecret: text(
    'The name of the Secret containing the password of each Redis user, by component, e.g. in the key ingress. If set, each role uses its own Redis user, e.g. sluice-ingress, instead of the user in the URL. The keys are controller, facade, ingress, dispatcher, and uninstall, or all and uninstall if mode is all. config/redis/users.acl contains the users.',
  ),
  tls: section(
    'Certificates for rediss:// and rediss+sentinel://. You can change the certificates without a restart.',
    {
      caSecret: text('The name of the Secret containing the certificates of the authorities in the key ca.crt.'),
      clientSecret: text('The name of the Secret containing a client certificate in the keys tls.crt and tls.key.'),
      serverName: text(meaningOf('SLUICE_REDIS_SERVER_NAME')),
      clientIssuerRef: issuerRef('clientSecret, using the prefix of all names as its common name'),
    },
  ),
  waitReplicas: z.int().min(0).max(5).default(0).describe(meaningOf('SLUICE_REDIS_WAIT_REPLICAS')),
  sentinel: section('The user and password for the Sentinels, if they are different from those for Redis.', {
    username: text(meaningOf('SLUICE_REDIS_SENTINEL_USERNAME')),
    passwordSecret: text('The name of the Secret containing the password for the Sentinels in the key password.'),
  }),
  embedded: section('A single Redis without replicas, which should only be used for evaluation.', {
    enabled: z.boolean().default(false).describe('Whether to install Redis together with Sluice.'),
    image: text(
      'An image with redis-server 7.0 or later, e.g. registry.example.com/redis:8.2. Defaults to the image built by make image, which uses the registry and the repository of Sluice, followed by -redis and the tag.',
    ),
    storage: text('The size of the volume.', '8Gi'),
    storageClassName: text('The storage class of the volume. Defaults to the default class of the cluster.'),
    maxmemory: text('The memory limit of Redis itself, e.g. 800mb. This should be less than limits.memory.', '400mb'),
    resources: openObject('The resource requests and limits.', {
      requests: { cpu: '100m', memory: '256Mi' },
      limits: { memory: '512Mi' },
    }),
    ...nodes('pod'),
  }),
});

const networkPolicy = section('NetworkPolicies for each role, which deny all other connections.', {
  enabled: z.boolean().default(false).describe('Whether to create NetworkPolicies.'),
  redisPorts: ports('The Redis ports, in addition to those in redis.url. Set them if the URL is in a Secret.', [6379]),
  kubernetesPorts: ports('The ports of the API server (for the controller and the facade).', [443, 6443]),
  httpsPorts: ports(
    'The ports of the identity provider (for the facade), in addition to those in oidc.issuers.',
    [443],
  ),
  smtpPorts: ports(
    'The ports of the mail server (for the controller), in addition to the one in smtp.url.',
    [25, 465, 587],
  ),
  collectorPorts: ports(
    'The ports of the OpenTelemetry collector, in addition to the one in tracing.endpoint.',
    [4318],
  ),
  clusterNetworks: list(
    z.string().regex(NETWORK),
    "Networks to which the dispatcher can't connect, except for networks in allowedNetworks.",
    ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
  ),
  clusterNetworksV6: list(z.string().regex(NETWORK), 'More of these networks, which are IPv6 by default.', [
    'fc00::/7',
    'fe80::/10',
  ]),
});

const monitoring = section(
  'Settings for Prometheus and Grafana. They are only created if the corresponding API is available.',
  {
    podMonitor: section('The PodMonitor for the Prometheus Operator.', {
      enabled: z.boolean().default(false).describe('Whether to create a PodMonitor.'),
      interval: text('The time between two scrapes.', '30s'),
      labels: textObject('Labels for the PodMonitor. Prometheus uses these labels to select the object.'),
    }),
    prometheusRule: section('The alerts for the Prometheus Operator.', {
      enabled: z.boolean().default(false).describe('Whether to create a PrometheusRule.'),
      job: text('The value of the job label, if the metrics are not scraped using the PodMonitor of this chart.', '', {
        regex: /^[^"\\\s]*$/,
        rule: 'must not contain quotes, backslashes or spaces',
      }),
      runbookUrl: text(
        'The URL of the runbooks, to which # and the name of the alert are appended. This page is also included in the chart as files/runbooks.md.',
        'https://sluice.dev/runbooks',
      ),
      labels: textObject('Labels for the PrometheusRule. Prometheus uses these labels to select the object.'),
    }),
    kubeStateMetrics: section('Configuration for kube-state-metrics, which provides metrics for each Sluice object.', {
      enabled: z
        .boolean()
        .default(false)
        .describe(
          'Whether to create a ConfigMap with the file config.yaml for --custom-resource-state-config-file. One is enough for several releases.',
        ),
      namespace: text(
        'The namespace of kube-state-metrics, where the ConfigMap can be mounted. Defaults to the release namespace.',
      ),
      labels: textObject('The labels of the ConfigMap.'),
    }),
    dashboards: section('Dashboard for Grafana.', {
      enabled: z
        .boolean()
        .default(false)
        .describe(
          'Whether to create a ConfigMap with the dashboard. You only need a single dashboard for each Grafana, because it can display any installation.',
        ),
      labels: textObject('Labels for the ConfigMap. The Grafana sidecar uses these labels to find the ConfigMap.', {
        grafana_dashboard: '1',
      }),
    }),
  },
);

/** All chart values, which are the source for values.yaml, values.schema.json, and the README. */
export const Values = z.strictObject({
  global: openObject('The values of a parent chart. Sluice does not use them.'),
  fullnameOverride: text('Replaces the prefix in the names of all objects.', '', {
    regex: /^([a-z]([-a-z0-9]{0,30}[a-z0-9])?)?$/,
    rule: 'must be at most 32 lowercase letters, digits and hyphens, and start with a letter',
  }),
  image,
  imagePullSecrets: openList('Secrets for pulling images, e.g. [{name: registry}].'),
  mode: z
    .enum(['roles', 'all'])
    .default('roles')
    .describe(
      'When set to roles, each role has its own Deployment. When set to all, a single Deployment runs all roles, and its service account has the permissions of both the controller and the facade.',
    ),
  crds: section('Settings for the CustomResourceDefinitions.', {
    enabled: z.boolean().default(true).describe('Whether to install and upgrade the CustomResourceDefinitions.'),
    keep: z
      .boolean()
      .default(true)
      .describe(
        'Whether to keep the CustomResourceDefinitions, and therefore all custom resources, when uninstalling the release.',
      ),
  }),
  rbac: section('Roles for users.', {
    aggregate: z
      .boolean()
      .default(false)
      .describe(
        'Whether to add permissions for Sluice to the Kubernetes roles admin, edit, and view. The role view never includes Integrations.',
      ),
  }),
  secrets: section('Specifies how the controller accesses Secrets.', {
    access: z
      .enum(['cluster', 'namespaced'])
      .default('cluster')
      .describe(
        'When set to cluster, the controller can read Secrets in all namespaces. When set to namespaced, it can only read Secrets in workspace namespaces and creates a RoleBinding in each of these namespaces. We recommend this setting for up to 200 workspaces.',
      ),
  }),
  redis,
  rootKey: section(
    'The root keys, which are used to derive signing secrets and encrypted values. Make sure to back up these keys.',
    {
      existingSecret: text(
        'The name of the Secret containing the root key (at least 32 bytes) in root.key, and newer root keys in root.key.2, root.key.3, and so on. If this is empty, the chart creates a Secret once and keeps it, including any keys that you add to this Secret.',
      ),
    },
  ),
  oidc: section('The identity providers for the REST API.', {
    issuers: list(z.string(), meaningOf('SLUICE_OIDC_ISSUERS')),
    audience: text(meaningOf('SLUICE_OIDC_AUDIENCE')),
    algorithms: list(z.enum(SIGNING_ALGORITHMS), meaningOf('SLUICE_OIDC_ALGORITHMS'), ['RS256']),
    clockToleranceSeconds: z
      .int()
      .min(0)
      .max(300)
      .default(30)
      .describe(meaningOf('SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS')),
    requireInvitedEmail: z.boolean().default(false).describe(meaningOf('SLUICE_INVITATION_REQUIRE_EMAIL')),
    clientClaims: list(z.string().regex(/^[^=,]+=[^,]+$/), meaningOf('SLUICE_OIDC_CLIENT_CLAIM')),
    requireScopes: z.boolean().default(false).describe(meaningOf('SLUICE_OIDC_REQUIRE_SCOPES')),
    maxTokenAgeSeconds: z
      .int()
      .min(0)
      .max(31_536_000)
      .default(0)
      .describe(`${meaningOf('SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS')} Set to 0 for the default.`),
  }),
  trust: section('Certificate authorities to trust in addition to public certificate authorities.', {
    configMap: text(
      'The name of the ConfigMap containing their certificates in the key ca.crt. It is used for Redis (unless redis.tls.caSecret is set), identity providers, the mail server, the collector, and the endpoints of partners. It is only read when a pod starts. If it has changed, helm upgrade restarts the pods.',
    ),
  }),
  smtp: section('The mail server for invitations.', {
    url: text(meaningOf('SLUICE_SMTP_URL'), '', {
      regex: /^(smtps?:\/\/[^/\s]+\/?)?$/,
      rule: 'must be smtp:// or smtps://',
    }),
    existingSecret: text('The name of the Secret containing this URL in the key url.'),
    from: text(meaningOf('SLUICE_SMTP_FROM')),
    allowPlainText: z.boolean().default(false).describe(meaningOf('SLUICE_SMTP_ALLOW_PLAIN_TEXT')),
    invitationUrl: text(meaningOf('SLUICE_INVITATION_URL')),
  }),
  allowedNetworks: list(z.string().regex(NETWORK), meaningOf('SLUICE_ALLOWED_NETWORKS')),
  refusedNetworks: list(
    z.string().regex(NETWORK),
    `${meaningOf('SLUICE_REFUSED_NETWORKS')} If there is a NetworkPolicy for the dispatcher, it denies these networks as well.`,
  ),
  allowedPorts: list(z.int().min(1).max(65_535), meaningOf('SLUICE_ALLOWED_PORTS')),
  endpointConsentOrigin: text(meaningOf('SLUICE_ENDPOINT_CONSENT_ORIGIN')),
  trustedProxies: list(z.union([z.string().regex(NETWORK), z.literal('none')]), meaningOf('SLUICE_TRUSTED_PROXIES')),
  instance: text(meaningOf('SLUICE_INSTANCE'), DEFAULT_INSTANCE, {
    regex: INSTANCE_OR_DEFAULT,
    rule: 'must be empty, or up to 32 lowercase letters, digits and hyphens',
  }),
  instanceCheck: z
    .boolean()
    .default(true)
    .describe(
      'Whether helm install looks for another installation with the same name in the cluster, and fails if there is one. To do this, you need to be allowed to list ClusterRoleBindings, and to get ConfigMaps in all namespaces. If true, helm upgrade also refuses to change instance.',
    ),
  limits: section('Settings for limits.', {
    queueMaxBytes: z.int().min(1_048_576).default(1_073_741_824).describe(meaningOf('SLUICE_QUEUE_MAX_BYTES')),
    ingressPerAddress: eventRate(50_000, 'SLUICE_INGRESS_ADDRESS_LIMIT'),
    ingressPerKey: eventRate(0, 'SLUICE_INGRESS_KEY_LIMIT'),
    ingressPerWorkspace: eventRate(0, 'SLUICE_INGRESS_WORKSPACE_LIMIT'),
    accounts: section('The account limits by name, e.g. {streams: 1000, storedBytes: 10737418240}.', {
      free: accountLimits(
        'The limits of each Account on the Free plan. To disable a limit, use unlimited. If a limit is omitted, the default of SLUICE_FREE_LIMITS is used.',
      ),
      metered: accountLimits(
        'The limits of each Account on the Metered plan. If a limit is omitted, the default of SLUICE_METERED_LIMITS is used.',
      ),
      max: accountLimits(
        'The highest limits of any Account, which also apply to spec.limits. By default, there are no maximum limits.',
      ),
      invited: accountLimits(
        "The limits written to each Account that is created for an accepted invitation, e.g. {streams: 0}. They can't exceed the default of SLUICE_FREE_LIMITS.",
      ),
    }),
  }),
  workspaces: section('Settings for workspaces.', {
    defaultQuota: openObject(
      'The limits for each workspace, e.g. {count/activations.sluice.dev: "10000"}. The controller adds these limits to the ResourceQuota sluice in the namespace of the workspace. Limits that you change in the ResourceQuota are kept. Limits that you remove are restored.',
    ),
  }),
  logLevel: ENVIRONMENT.SLUICE_LOG_LEVEL.describe(meaningOf('SLUICE_LOG_LEVEL')),
  apiReference: z.boolean().default(true).describe(meaningOf('SLUICE_FACADE_DOCS')),
  shutdownDelaySeconds: z
    .int()
    .min(0)
    .max(600)
    .default(5)
    .describe(
      'The number of seconds during which ingress and the facade continue to serve requests after receiving a SIGTERM. The termination grace period of all pods is 25 seconds longer.',
    ),
  tracing: section('Tracing. More variables of OpenTelemetry can be set in extraEnv.', {
    endpoint: text(tracingMeaning('OTEL_EXPORTER_OTLP_ENDPOINT')),
    protocol: z
      .enum(['http/protobuf', 'http/json'])
      .default('http/protobuf')
      .describe(tracingMeaning('OTEL_EXPORTER_OTLP_PROTOCOL')),
    sampler: text(tracingMeaning('OTEL_TRACES_SAMPLER'), 'parentbased_always_on'),
    samplerArg: text(tracingMeaning('OTEL_TRACES_SAMPLER_ARG'), '1'),
  }),
  networkPolicy,
  monitoring,
  uninstall: section('The Job that removes the Sluice finalizers before helm uninstall removes the controller.', {
    enabled: z
      .boolean()
      .default(true)
      .describe(
        'Whether to run the Job. If this is disabled, you need to delete all custom resources before uninstalling Sluice because it will not be possible to delete them or their namespaces afterwards.',
      ),
    ignoreUndelivered: z
      .boolean()
      .default(false)
      .describe('Whether to uninstall Sluice even if there are undelivered events.'),
    ...nodes('pod'),
  }),
  test: section('The pod that helm test starts.', nodes('pod')),
  ...(Object.fromEntries([...WORKLOADS, ALL_IN_ONE].map(each => [each.name, workload(each)])) as Record<
    Workload['name'],
    ReturnType<typeof workload>
  >),
});

export type Values = z.output<typeof Values>;
