import type { ENVIRONMENT } from '../../../src/config/environment.ts';
import { secretsRoleOf } from '../rbac/permissions.ts';
import { labelsOf } from './metadata.ts';
import { REDIS_FILES } from './redis-files.ts';
import { SERVED_FILES } from './served-files.ts';
import type { Format, Target } from './target.ts';

type Variable = keyof typeof ENVIRONMENT;

/** The variables that all pods read from the ConfigMap, and the value for each variable. */
const SETTINGS: Readonly<Partial<Record<Variable, readonly [path: string, as: Format['as']]>>> = {
  SLUICE_LOG_LEVEL: ['logLevel', undefined],
  SLUICE_SHUTDOWN_DELAY_SECONDS: ['shutdownDelaySeconds', 'text'],
  SLUICE_FACADE_DOCS: ['apiReference', 'text'],
  SLUICE_QUEUE_MAX_BYTES: ['limits.queueMaxBytes', 'text'],
  SLUICE_INGRESS_ADDRESS_LIMIT: ['limits.ingressPerAddress', 'text'],
  SLUICE_INGRESS_KEY_LIMIT: ['limits.ingressPerKey', 'text'],
  SLUICE_INGRESS_WORKSPACE_LIMIT: ['limits.ingressPerWorkspace', 'text'],
  SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: ['oidc.clockToleranceSeconds', 'text'],
};

/**
 * The variables that are only set if their value is not empty, 0, or false. For these variables, this must be the
 * default.
 */
const OPTIONAL: typeof SETTINGS = {
  SLUICE_INSTANCE: ['instance', 'text'],
  SLUICE_ALLOWED_NETWORKS: ['allowedNetworks', 'joined'],
  SLUICE_REFUSED_NETWORKS: ['refusedNetworks', 'joined'],
  SLUICE_ALLOWED_PORTS: ['allowedPorts', 'joined'],
  SLUICE_ENDPOINT_CONSENT_ORIGIN: ['endpointConsentOrigin', 'text'],
  SLUICE_TRUSTED_PROXIES: ['trustedProxies', 'joined'],
  SLUICE_FREE_LIMITS: ['limits.accounts.free', 'pairs'],
  SLUICE_METERED_LIMITS: ['limits.accounts.metered', 'pairs'],
  SLUICE_MAX_LIMITS: ['limits.accounts.max', 'pairs'],
  SLUICE_INVITED_LIMITS: ['limits.accounts.invited', 'pairs'],
  SLUICE_WORKSPACE_QUOTA: ['workspaces.defaultQuota', 'text'],
  SLUICE_REDIS_SERVER_NAME: ['redis.tls.serverName', 'text'],
  SLUICE_REDIS_WAIT_REPLICAS: ['redis.waitReplicas', 'text'],
  SLUICE_REDIS_SENTINEL_USERNAME: ['redis.sentinel.username', 'text'],
  SLUICE_OIDC_ISSUERS: ['oidc.issuers', 'joined'],
  SLUICE_OIDC_AUDIENCE: ['oidc.audience', 'text'],
  SLUICE_OIDC_ALGORITHMS: ['oidc.algorithms', 'joined'],
  SLUICE_INVITATION_REQUIRE_EMAIL: ['oidc.requireInvitedEmail', 'text'],
  SLUICE_OIDC_CLIENT_CLAIM: ['oidc.clientClaims', 'joined'],
  SLUICE_OIDC_REQUIRE_SCOPES: ['oidc.requireScopes', 'text'],
  SLUICE_OIDC_MAX_TOKEN_AGE_SECONDS: ['oidc.maxTokenAgeSeconds', 'text'],
  SLUICE_SMTP_FROM: ['smtp.from', 'text'],
  SLUICE_SMTP_ALLOW_PLAIN_TEXT: ['smtp.allowPlainText', 'text'],
  SLUICE_INVITATION_URL: ['smtp.invitationUrl', 'text'],
};

const TRACING = {
  OTEL_EXPORTER_OTLP_ENDPOINT: ['tracing.endpoint', 'text'],
  OTEL_EXPORTER_OTLP_PROTOCOL: ['tracing.protocol', 'text'],
  OTEL_TRACES_SAMPLER: ['tracing.sampler', 'text'],
  OTEL_TRACES_SAMPLER_ARG: ['tracing.samplerArg', 'text'],
} as const;

/**
 * The variables that have a different source: Secrets, the pod, or the manifests, in which the ports are fixed and all
 * addresses are used.
 */
export const ELSEWHERE: readonly Variable[] = [
  'SLUICE_REDIS_URL',
  'SLUICE_REDIS_USERNAME',
  ...REDIS_FILES.flatMap(({ files }) => Object.keys(files) as Variable[]),
  'SLUICE_SMTP_URL',
  ...SERVED_FILES,
  'SLUICE_ROOT_KEY_FILE',
  'SLUICE_AUDIT_FILE',
  'SLUICE_NAMESPACE',
  'SLUICE_INGRESS_PORT',
  'SLUICE_FACADE_PORT',
  'SLUICE_OPS_PORT',
  'SLUICE_OPS_HOST',
];

/** The variables in the ConfigMap. */
export const CONFIGURED = [
  ...Object.keys(SETTINGS),
  ...Object.keys(OPTIONAL),
  'SLUICE_SECRETS_ROLE',
] as readonly Variable[];

const format = (as: Format['as']): Format => (as === undefined ? {} : { as });

/** Returns the ConfigMap with the variables of all pods. */
export function configMap(target: Target): object {
  const required = Object.entries(SETTINGS).map(([name, [path, as]]) => [name, target.value(path, format(as))]);
  const optional = Object.entries(OPTIONAL).map(([name, [path, as]]) =>
    target.when(path, { [name]: target.value(path, format(as)) }),
  );
  const tracing = Object.entries(TRACING).map(([name, [path, as]]) => [name, target.value(path, { as })]);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `${target.prefix}-config`, namespace: target.namespace, labels: labelsOf(target) },
    data: Object.assign(
      Object.fromEntries(required),
      ...optional,
      target.whenIs('secrets.access', 'namespaced', { SLUICE_SECRETS_ROLE: secretsRoleOf(target) }),
      target.when('tracing.endpoint', Object.fromEntries(tracing)),
    ),
  };
}
