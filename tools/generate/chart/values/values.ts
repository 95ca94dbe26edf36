import { z } from 'zod';
import { DEFAULT_INSTANCE, INSTANCE } from '../../../../src/api/instance.ts';
import { LIMIT_NAMES } from '../../../../src/api/kinds/account-limits.ts';
import { ENVIRONMENT } from '../../../../src/config/environment.ts';
import { SIGNING_ALGORITHMS } from '../../../../src/config/oidc-environment.ts';
import { ALL_IN_ONE, WORKLOADS, type Workload } from '../../roles.ts';
import { meaningOf, tracingMeaning } from './descriptions.ts';
import { monitoring } from './monitoring.ts';
import { networkPolicy } from './network-policy.ts';
import { redis } from './redis.ts';
import { list, NETWORK, openList, openObject, section, text } from './value-types.ts';
import { nodes, workload } from './workload.ts';

const eventRate = (fallback: number, variable: keyof typeof ENVIRONMENT) =>
  z.int().min(0).max(1_000_000).default(fallback).describe(meaningOf(variable));

/** Account limits by name. The roles check the numbers. Helm names the wrong path for a key in `propertyNames`. */
const accountLimits = (description: string) =>
  openObject(description).meta({
    description,
    patternProperties: { [`^(${LIMIT_NAMES.join('|')})$`]: {} },
    additionalProperties: false,
  });

/** The installation's name. Empty for the default installation. */
const INSTANCE_OR_DEFAULT = new RegExp(`^(${INSTANCE.source.slice(1, -1)})?$`);

/** The format of a registry, e.g. `registry.example.com:5000/team`. */
export const REGISTRY = /^[a-z0-9.-]+(:[0-9]+)?(\/[a-z0-9._-]+)*$/;

const image = section('The Sluice image.', {
  registry: text(
    'The registry host, including the port if required, e.g. registry.example.com. Required, because there is no default.',
    '',
    { regex: new RegExp(`^(${REGISTRY.source.slice(1, -1)})?$`), rule: 'must be a host, without https://' },
  ),
  repository: text('The repository in the registry.', 'sluice'),
  tag: text('The image tag. Defaults to the chart version.'),
  digest: text('The image digest, e.g. sha256:4bf0…. This value takes precedence over the tag.', '', {
    regex: /^(sha256:[0-9a-f]{64})?$/,
    rule: 'must be sha256: and 64 hexadecimal digits',
  }),
  pullPolicy: z
    .enum(['IfNotPresent', 'Always', 'Never'])
    .default('IfNotPresent')
    .describe('The pull policy of the image.'),
});

const resources = (request: string, limit: string) =>
  openObject('The resource requests and limits.', {
    requests: { cpu: '100m', memory: request },
    limits: { memory: limit },
  });

/** All chart values, which are the source for values.yaml, values.schema.json, and the README. */
export const Values = z.strictObject({
  global: openObject('The values of a parent chart. Sluice does not use them.'),
  enabled: z
    .boolean()
    .default(true)
    .describe('A condition for the dependency of a parent chart, e.g. sluice.enabled. Sluice does not use it.'),
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
      'When set to roles, each role has its own Deployment. When set to all, a single Deployment runs all roles. Its service account has the permissions of both the controller and the facade.',
    ),
  crds: section('Settings for the CustomResourceDefinitions.', {
    enabled: z
      .boolean()
      .default(true)
      .describe('If true, the chart installs and upgrades the CustomResourceDefinitions.'),
    keep: z
      .boolean()
      .default(true)
      .describe(
        'If true, Helm keeps the CustomResourceDefinitions when you uninstall the release. This also keeps the custom resources of all installations.',
      ),
  }),
  rbac: section('Roles for users.', {
    aggregate: z
      .boolean()
      .default(false)
      .describe(
        'If true, permissions for Sluice are added to the Kubernetes roles admin, edit, and view. The role view never includes Integrations.',
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
        'The name of the Secret containing the root key (at least 32 bytes) in root.key, and newer root keys in root.key.2, root.key.3, and so on. If empty, the chart creates a Secret once and keeps it, including any keys that you add to this Secret.',
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
      'The name of the ConfigMap containing the certificates of private authorities in the key ca.crt. Sluice trusts them in addition to the public authorities, for Redis (unless redis.tls.caSecret is set), identity providers, the mail server, the collector, and the endpoints of partners. A pod only reads them when it starts. If they have changed, helm upgrade restarts the pods.',
    ),
  }),
  smtp: section('The mail server for invitations.', {
    url: text(meaningOf('SLUICE_SMTP_URL'), '', {
      regex: /^(smtps?:\/\/[^/\s]+\/?)?$/,
      rule: 'must be smtp:// or smtps://',
    }),
    existingSecret: text(
      'The name of the Secret containing the URL of the mail server in the key url. If it has changed, restart the controller.',
    ),
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
      'If true, helm install fails if the cluster already has an installation with the same name, and helm upgrade fails if you change instance. The user who runs helm install needs permission to list ClusterRoleBindings and to get ConfigMaps in all namespaces.',
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
      'The limits for each workspace, e.g. {count/activations.sluice.dev: "10000"}. The controller adds these limits to the ResourceQuota sluice in the workspace\'s namespace. Limits that you change in the ResourceQuota are kept. Limits that you remove are restored.',
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
        'If true, helm uninstall first runs a Job that removes the Sluice finalizers. If false, delete all custom resources before you uninstall Sluice, because you cannot delete them or their namespaces afterwards.',
      ),
    ignoreUndelivered: z
      .boolean()
      .default(false)
      .describe('If true, helm uninstall continues even if there are undelivered events, which may then be lost.'),
    resources: resources('128Mi', '512Mi'),
    ...nodes('pod'),
  }),
  test: section('The pod that helm test starts.', { resources: resources('64Mi', '256Mi'), ...nodes('pod') }),
  ...(Object.fromEntries([...WORKLOADS, ALL_IN_ONE].map(each => [each.name, workload(each)])) as Record<
    Workload['name'],
    ReturnType<typeof workload>
  >),
});

export type Values = z.output<typeof Values>;
