import { z } from 'zod';
import { DEFAULT_INSTANCE, INSTANCE } from '../../../src/api/instance.ts';
import { ENVIRONMENT } from '../../../src/config/environment.ts';
import { SIGNING_ALGORITHMS } from '../../../src/config/oidc-environment.ts';
import { TRACING_ENVIRONMENT } from '../../../src/config/tracing-environment.ts';
import { ALL_IN_ONE, WORKLOADS, type Workload } from '../roles.ts';
import { list, openList, openObject, ports, section, text } from './value-types.ts';

const meaningOf = (variable: keyof typeof ENVIRONMENT) => ENVIRONMENT[variable].description ?? '';
const tracingMeaning = (variable: string) => TRACING_ENVIRONMENT[variable]?.meaning ?? '';

const eventRate = (fallback: number, variable: keyof typeof ENVIRONMENT) =>
  z.int().min(0).max(1_000_000).default(fallback).describe(meaningOf(variable));

/** A network in CIDR notation, e.g. 10.0.0.0/8. The roles check the numbers. */
const NETWORK = /^[0-9a-fA-F.:]+\/[0-9]{1,3}$/;

/** Empty for the default installation. */
const INSTANCE_OR_DEFAULT = new RegExp(`^(${INSTANCE.source.slice(1, -1)})?$`);

const image = section('Image of Sluice.', {
  registry: text(
    'Registry host, with a port if needed, e.g. registry.example.com. Required, because there is no default.',
  ),
  repository: text('Repository in the registry.', 'sluice'),
  tag: text('Tag. Defaults to the version of the chart.'),
  digest: text('Digest, e.g. sha256:4bf0…. Takes precedence over the tag.', '', {
    regex: /^(sha256:[0-9a-f]{64})?$/,
    rule: 'must be sha256: and 64 hexadecimal digits',
  }),
  pullPolicy: z.enum(['IfNotPresent', 'Always', 'Never']).default('IfNotPresent').describe('When to pull the image.'),
});

const expose = section('Way in from outside of the cluster.', {
  type: z
    .enum(['None', 'Ingress', 'HTTPRoute'])
    .default('None')
    .describe('Object to create: None, Ingress, or HTTPRoute of the Gateway API.'),
  host: text('Host name, required unless the type is None.'),
  annotations: openObject('Annotations of the object.'),
  className: text('Class of an Ingress. Defaults to the default class of the cluster.'),
  tlsSecret: text('Secret with the certificate of an Ingress.'),
  parentRefs: openList('Gateways of an HTTPRoute, e.g. [{name: public, namespace: gateways}].'),
});

const service = section('Service of the role.', {
  type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']).default('ClusterIP').describe('Type of the Service.'),
  port: z.int().min(1).max(65_535).default(80).describe('Port of the Service.'),
  annotations: openObject('Annotations of the Service.'),
});

const issuerRef = (certificate: string) =>
  openObject(
    `Issuer of cert-manager, e.g. {name: internal, kind: ClusterIssuer}. If set, a Certificate is created for ${certificate}.`,
  );

const tls = section('Certificate of the role itself. Without it, the role serves plain HTTP.', {
  secretName: text(
    'Secret that has the certificate in the keys tls.crt and tls.key. The role then only accepts TLS, and uses a new certificate within two minutes, without a restart. Set service.port to 443 as well. An Ingress or a Gateway in front needs to be told to use TLS.',
  ),
  issuerRef: issuerRef('this Secret, which includes the names of the Service and expose.host'),
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
    replicas: z.int().min(0).default(of.replicas).describe('Number of pods.'),
    resources: openObject(
      'Requests and limits. The controller and the facade use three quarters of limits.memory as heap.',
      of.resources,
    ),
    maxUnavailable: z
      .union([z.int().min(0), z.string()])
      .default(1)
      .describe('Number or percentage of pods that an eviction may stop at the same time.'),
    podLabels: openObject('Labels of the pods.'),
    podAnnotations: openObject('Annotations of the pods.'),
    nodeSelector: openObject('Labels of the nodes to run on.'),
    tolerations: openList('Tolerations of the pods.'),
    affinity: openObject('Affinity of the pods, in addition to the spread over hosts and zones.'),
    priorityClassName: text('Priority class of the pods.'),
    extraEnv: openList('Environment variables, e.g. [{name: NODE_EXTRA_CA_CERTS, value: /etc/ca/ca.crt}].'),
    extraVolumes: openList('Volumes of the pods.'),
    extraVolumeMounts: openList('Mounts of these volumes.'),
    ...(of.name !== 'all' && of.serves.length > 0 ? { service, tls, expose } : {}),
  });
}

const redis = section('Redis. Set one of url, existingSecret, and embedded.enabled.', {
  url: text(meaningOf('SLUICE_REDIS_URL')),
  existingSecret: text('Secret that has this URL in the key url.'),
  passwordSecret: text(
    'Secret that has the password in the key password, instead of the URL. It can change without a restart.',
  ),
  usersSecret: text(
    'Secret that has the password of each Redis user in the key of its component, e.g. ingress. If set, each role connects with its own user, e.g. sluice-ingress, instead of one in the URL. The keys are controller, facade, ingress, dispatcher, and uninstall, or all and uninstall if mode is all. Create the users from config/redis/users.acl.',
  ),
  tls: section('Certificates for rediss:// and rediss+sentinel://. They can change without a restart.', {
    caSecret: text('Secret that has the certificates of the authorities in the key ca.crt.'),
    clientSecret: text('Secret that has a client certificate in the keys tls.crt and tls.key.'),
    serverName: text(meaningOf('SLUICE_REDIS_SERVER_NAME')),
    clientIssuerRef: issuerRef('clientSecret, with the start of all names as common name'),
  }),
  waitReplicas: z.int().min(0).max(5).default(0).describe(meaningOf('SLUICE_REDIS_WAIT_REPLICAS')),
  sentinel: section('Access to the Sentinels, if it differs from the access to Redis.', {
    username: text(meaningOf('SLUICE_REDIS_SENTINEL_USERNAME')),
    passwordSecret: text('Secret that has the password of the Sentinels in the key password.'),
  }),
  embedded: section('A single Redis without replicas, for evaluation only.', {
    enabled: z.boolean().default(false).describe('Whether to install Redis beside Sluice.'),
    image: text(
      'Image with redis-server 7.0 or later, e.g. registry.example.com/redis:8.2. Defaults to the image that make image builds: the registry and the repository of Sluice, followed by -redis and the tag.',
    ),
    storage: text('Size of the volume.', '8Gi'),
    storageClassName: text('Class of the volume. Defaults to the default class of the cluster.'),
    maxmemory: text('Memory limit of Redis itself, e.g. 800mb. It should be below limits.memory.', '400mb'),
    resources: openObject('Requests and limits.', {
      requests: { cpu: '100m', memory: '256Mi' },
      limits: { memory: '512Mi' },
    }),
  }),
});

const networkPolicy = section('NetworkPolicies for each role, which deny all other connections.', {
  enabled: z.boolean().default(false).describe('Whether to create NetworkPolicies.'),
  redisPorts: ports('Ports of Redis.', [6379]),
  kubernetesPorts: ports('Ports of the API server, for the controller and the facade.', [443, 6443]),
  httpsPorts: ports('Ports of the identity provider, for the facade.', [443]),
  smtpPorts: ports('Ports of the mail server, for the controller.', [25, 465, 587]),
  collectorPorts: ports('Ports of the OpenTelemetry collector.', [4318]),
  clusterNetworks: list(
    z.string().regex(NETWORK),
    'IPv4 networks that the dispatcher cannot connect to, except for those in allowedNetworks.',
    ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
  ),
  clusterNetworksV6: list(z.string(), 'IPv6 networks that the dispatcher cannot connect to.', [
    'fc00::/7',
    'fe80::/10',
  ]),
});

const monitoring = section('Objects for Prometheus and Grafana. They are only created if the API is there.', {
  podMonitor: section('PodMonitor of the Prometheus Operator.', {
    enabled: z.boolean().default(false).describe('Whether to create a PodMonitor.'),
    interval: text('Time between two scrapes.', '30s'),
    labels: openObject('Labels for the PodMonitor. Prometheus uses them to select it.'),
  }),
  prometheusRule: section('Alerts.', {
    enabled: z.boolean().default(false).describe('Whether to create a PrometheusRule.'),
    job: text('Value of the label job of the metrics, if they are not scraped by the PodMonitor of this chart.', '', {
      regex: /^[^"\\\s]*$/,
      rule: 'must not contain quotes, backslashes or spaces',
    }),
    runbookUrl: text(
      'Address of the runbooks, to which # and the alert are added. The page is also in files/runbooks.md of this chart.',
      'https://sluice.dev/runbooks',
    ),
    labels: openObject('Labels for the PrometheusRule. Prometheus uses them to select it.'),
  }),
  kubeStateMetrics: section('Configuration for kube-state-metrics, with metrics about every object of Sluice.', {
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Whether to create a ConfigMap with the file config.yaml for --custom-resource-state-config-file. One is enough for several releases.',
      ),
    namespace: text(
      'Namespace of kube-state-metrics, which mounts the ConfigMap. Defaults to the namespace of the release.',
    ),
    labels: openObject('Labels of the ConfigMap.'),
  }),
  dashboards: section('Dashboard for Grafana.', {
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Whether to create a ConfigMap with the dashboard. It shows any installation, so one per Grafana is enough.',
      ),
    labels: openObject('Labels for the ConfigMap. The Grafana sidecar uses them to find it.', {
      grafana_dashboard: '1',
    }),
  }),
});

/** All values of the chart: source of values.yaml, values.schema.json and the README. */
export const Values = z.strictObject({
  global: openObject('Values of a parent chart. Not used.'),
  fullnameOverride: text('Replaces the start of the names of all objects.', '', {
    regex: /^([a-z]([-a-z0-9]{0,30}[a-z0-9])?)?$/,
    rule: 'must be at most 32 lowercase letters, digits and hyphens, and start with a letter',
  }),
  image,
  imagePullSecrets: openList('Secrets for pulling images, e.g. [{name: registry}].'),
  mode: z
    .enum(['roles', 'all'])
    .default('roles')
    .describe(
      'roles runs a Deployment for each role. all runs all roles in one Deployment, whose service account has the rights of the controller and of the facade.',
    ),
  crds: section('CustomResourceDefinitions.', {
    enabled: z.boolean().default(true).describe('Whether to install and upgrade them.'),
    keep: z
      .boolean()
      .default(true)
      .describe('Whether to keep them, and with them all custom resources, when the release is uninstalled.'),
  }),
  rbac: section('Roles for users.', {
    aggregate: z
      .boolean()
      .default(false)
      .describe(
        'Whether to add the access to Sluice to the roles admin, edit and view of Kubernetes. view never includes Integrations.',
      ),
  }),
  secrets: section('Access of the controller to Secrets.', {
    access: z
      .enum(['cluster', 'namespaced'])
      .default('cluster')
      .describe(
        'With cluster, the controller can read Secrets in all namespaces. With namespaced, it can only read Secrets in the namespaces of workspaces, and creates a RoleBinding in each of them. We recommend this setting for up to 200 workspaces.',
      ),
  }),
  redis,
  rootKey: section('Root keys, from which signing secrets and encrypted values are derived. Back them up.', {
    existingSecret: text(
      'Secret that has the key in root.key, with at least 32 bytes, and newer ones in root.key.2, root.key.3, and so on. If empty, a Secret is created once and kept, including the keys that you add to it.',
    ),
  }),
  oidc: section('Identity providers of the REST API.', {
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
  trust: section('Certificate authorities that are trusted in addition to the public ones.', {
    configMap: text(
      'ConfigMap that has their certificates in the key ca.crt. It applies to Redis (unless redis.tls.caSecret is set), to the identity providers, the mail server, the collector, and the endpoints of partners. It is only read when a pod starts. helm upgrade restarts the pods if it has changed.',
    ),
  }),
  smtp: section('Mail server for invitations.', {
    url: text(meaningOf('SLUICE_SMTP_URL'), '', {
      regex: /^(smtps?:\/\/[^/\s]+\/?)?$/,
      rule: 'must be smtp:// or smtps://',
    }),
    existingSecret: text('Secret that has this URL in the key url.'),
    from: text(meaningOf('SLUICE_SMTP_FROM')),
    allowPlainText: z.boolean().default(false).describe(meaningOf('SLUICE_SMTP_ALLOW_PLAIN_TEXT')),
    invitationUrl: text(meaningOf('SLUICE_INVITATION_URL')),
  }),
  allowedNetworks: list(z.string().regex(NETWORK), meaningOf('SLUICE_ALLOWED_NETWORKS')),
  refusedNetworks: list(
    z.string().regex(NETWORK),
    `${meaningOf('SLUICE_REFUSED_NETWORKS')} The NetworkPolicy of the dispatcher, if there is one, denies them as well.`,
  ),
  allowedPorts: list(z.int().min(1).max(65_535), meaningOf('SLUICE_ALLOWED_PORTS')),
  endpointConsentOrigin: text(meaningOf('SLUICE_ENDPOINT_CONSENT_ORIGIN')),
  trustedProxies: list(z.union([z.string().regex(NETWORK), z.literal('none')]), meaningOf('SLUICE_TRUSTED_PROXIES')),
  instance: text(meaningOf('SLUICE_INSTANCE'), DEFAULT_INSTANCE, {
    regex: INSTANCE_OR_DEFAULT,
    rule: 'must be empty, or up to 32 lowercase letters, digits and hyphens',
  }),
  limits: section('Limits.', {
    queueMaxBytes: z.int().min(1_048_576).default(1_073_741_824).describe(meaningOf('SLUICE_QUEUE_MAX_BYTES')),
    ingressPerAddress: eventRate(50_000, 'SLUICE_INGRESS_ADDRESS_LIMIT'),
    ingressPerKey: eventRate(0, 'SLUICE_INGRESS_KEY_LIMIT'),
    ingressPerWorkspace: eventRate(0, 'SLUICE_INGRESS_WORKSPACE_LIMIT'),
    accounts: section('Limits of accounts by name, e.g. {streams: 1000, storedBytes: 10737418240}.', {
      free: openObject(
        'Limits of each Account on the Free plan. Use unlimited for no limit. Limits that are left out keep the defaults of SLUICE_FREE_LIMITS.',
      ),
      metered: openObject('The same for the Metered plan. Defaults are those of SLUICE_METERED_LIMITS.'),
      max: openObject(
        'Highest limits of any Account, whatever its spec.limits says. By default, there are no maximum limits.',
      ),
      invited: openObject(
        'Limits that are written to each Account created for an accepted invitation, e.g. {streams: 0}. None can exceed the default of SLUICE_FREE_LIMITS.',
      ),
    }),
  }),
  workspaces: section('Workspaces.', {
    defaultQuota: openObject(
      'Limits for each workspace, e.g. {count/activations.sluice.dev: "10000"}. The controller writes them to the ResourceQuota sluice in its namespace. Limits that you have changed there are kept, and those that you remove are restored.',
    ),
  }),
  logLevel: ENVIRONMENT.SLUICE_LOG_LEVEL.describe(meaningOf('SLUICE_LOG_LEVEL')),
  shutdownDelaySeconds: z
    .int()
    .min(0)
    .max(600)
    .default(5)
    .describe(
      'Number of seconds during which ingress and the facade keep serving requests after SIGTERM. The grace period of all pods is 25 seconds longer.',
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
  uninstall: section('Job that removes the finalizers of Sluice before helm uninstall removes the controller.', {
    enabled: z
      .boolean()
      .default(true)
      .describe(
        'Whether to run the Job. Without it, delete all custom resources before you uninstall Sluice, because they and their namespaces cannot be deleted afterwards.',
      ),
    ignoreUndelivered: z
      .boolean()
      .default(false)
      .describe('Whether to uninstall Sluice even if there are undelivered events.'),
    nodeSelector: openObject('Labels of the nodes to run on.'),
    tolerations: openList('Tolerations of the pod.'),
  }),
  ...(Object.fromEntries([...WORKLOADS, ALL_IN_ONE].map(each => [each.name, workload(each)])) as Record<
    Workload['name'],
    ReturnType<typeof workload>
  >),
});

export type Values = z.output<typeof Values>;
