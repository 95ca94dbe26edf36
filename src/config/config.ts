import type { EndpointNetworks } from '../core/delivery/network.ts';
import type { LimitPolicy, Limits } from '../core/limits/limits.ts';
import { nearestName } from '../core/problems/nearest-name.ts';
import { type Mailbox, parseMailbox } from '../mail/address.ts';
import { defaultSender, parseSmtpUrl, type SmtpServer } from '../mail/smtp-url.ts';
import type { RedisSettings } from '../redis/connection/redis-settings.ts';
import type { AuditTarget } from '../telemetry/audit-destination.ts';
import type { LOG_LEVELS } from '../telemetry/log.ts';
import type { TracingConfig } from '../telemetry/tracing-config.ts';
import type { ServedCertificate } from '../tls/served-certificate.ts';
import { ENVIRONMENT, type EnvironmentValues, parseEnvironment } from './environment.ts';
import { readAuditTarget } from './facade-environment.ts';
import { readInvitedLimits, readLimits } from './limits-environment.ts';
import { type OidcConfig, readOidc } from './oidc-environment.ts';
import { readRedis } from './redis-environment.ts';
import { type RootKeySource, readRootKey } from './root-key-file.ts';
import { isServiceLink } from './service-links.ts';
import { readServedCertificate } from './tls-environment.ts';
import { readTracing } from './tracing-environment.ts';

export const ROLES = ['controller', 'facade', 'ingress', 'dispatcher'] as const;
export type Role = (typeof ROLES)[number];

/** Settings used to send invitations by email. */
interface MailConfig {
  readonly server: SmtpServer;
  readonly from: Mailbox;
  readonly acceptUrl: string | undefined;
  /** True if emails may be sent to a server on another machine without TLS. */
  readonly plainText: boolean;
}

export interface Config {
  readonly roles: readonly Role[];
  readonly redis: RedisSettings;
  readonly ingressPort: number;
  readonly facadePort: number;
  /** Undefined if ingress serves plain HTTP or is not running. */
  readonly ingressCertificate: ServedCertificate | undefined;
  readonly facadeCertificate: ServedCertificate | undefined;
  readonly opsPort: number;
  /** IP address at which the ops port listens. Undefined means all addresses. */
  readonly opsHost: string | undefined;
  /** Root keys. Undefined if they are not required by any role. */
  readonly rootKeys: RootKeySource | undefined;
  /** Undefined if it is not required by any role. */
  readonly oidc: OidcConfig | undefined;
  readonly endpoints: Required<EndpointNetworks>;
  /** Name under which endpoints are asked for consent. Undefined if consent is not required. */
  readonly endpointConsentOrigin: string | undefined;
  /** The networks of proxies with a trusted X-Forwarded-For header. Undefined if client addresses are not used. */
  readonly trustedProxies: readonly string[] | undefined;
  /** The maximum number of events per second for each ingress replica, or 0 for no limit. */
  readonly ingressRates: {
    readonly perAddress: number;
    readonly perKey: number;
    readonly perWorkspace: number;
  };
  /** The destination of audit lines. */
  readonly audit: AuditTarget;
  /** True if only callers with the invited email address can answer an invitation. */
  readonly requireInvitedEmail: boolean;
  /** True if the facade serves its reference. */
  readonly servesReference: boolean;
  /** Undefined if there is no mail server. */
  readonly mail: MailConfig | undefined;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly queueMaxBytes: number;
  /**
   * ClusterRole to bind in the workspace namespaces. If undefined, the controller reads the Secrets of the whole
   * cluster.
   */
  readonly secretsRole: string | undefined;
  /** The limits for each workspace by resource, as Kubernetes quantities. Undefined if there are no limits. */
  readonly workspaceQuota: Readonly<Record<string, string>> | undefined;
  /** The account limits. */
  readonly limits: LimitPolicy;
  /** The limits of accounts created when accepting an invitation. */
  readonly invitedLimits: Limits;
  /** Namespace of the controller's Lease. If undefined, the client's own namespace is used. */
  readonly namespace: string | undefined;
  /** Name of this installation, or `''` for the default one. */
  readonly instance: string;
  /** The time that the process continues to serve requests after SIGTERM. */
  readonly shutdownDelayMs: number;
  /** Undefined if tracing is disabled. */
  readonly tracing: TracingConfig | undefined;
  /** The settings for finding the API server. A field is undefined if its variable is not set. */
  readonly kubernetes: {
    /** `KUBECONFIG`: the path of a kubeconfig, or several paths separated by `:`. */
    readonly kubeconfig: string | undefined;
    /** `HOME`: the folder that may contain `.kube/config`. */
    readonly home: string | undefined;
    /** `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`, as set by Kubernetes in a pod. */
    readonly serviceHost: string | undefined;
    readonly servicePort: string | undefined;
  };
}

/** Thrown for an invalid configuration. The message lists each invalid variable, including how to change it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Commands, in addition to the roles. `src/commands` runs the commands. */
export const COMMAND_NAMES = ['uninstall', 'verify', 'repair-redis'] as const;

/** Roles that check access tokens. */
export const NEEDS_OIDC: readonly Role[] = ['facade'];
/** Roles that derive keys from the root key, or decrypt values with it. */
export const NEEDS_ROOT_KEY: readonly Role[] = ['controller', 'facade', 'dispatcher'];

/**
 * Reads `argv` (a single role, or `all`) and the environment. Unknown SLUICE_* variables are errors, since a misspelled
 * variable would otherwise silently use the default. Variables set by Kubernetes for Services are ignored.
 */
export function readConfig(argv: readonly string[], env: Env): Config {
  const problems: string[] = [];
  const [word, ...rest] = argv;
  // Without an identity provider, `all` runs without the REST API. You can still use kubectl in this case.
  const all = ROLES.filter(role => role !== 'facade' || given(env.SLUICE_OIDC_ISSUERS));
  const roles = word === 'all' ? all : ROLES.filter(role => role === word);
  if (roles.length === 0 || rest.length > 0) problems.push(describeUsage(word, roles.length === 0));
  const data = readVariables(env, problems);
  const needs = (those: readonly Role[]) => roles.some(role => those.includes(role));
  const rootKeys = data && needs(NEEDS_ROOT_KEY) ? readRootKey(data.SLUICE_ROOT_KEY_FILE, problems) : undefined;
  const oidc = data && needs(NEEDS_OIDC) ? readOidc(data, problems) : undefined;
  const redis = data && readRedis(data, problems);
  const certificateOf = (role: 'ingress' | 'facade') =>
    data && roles.includes(role) ? readServedCertificate(role, data, problems) : undefined;
  const [ingressCertificate, facadeCertificate] = [certificateOf('ingress'), certificateOf('facade')];
  const tracing = readTracing(env, roles, problems);
  if (problems.length > 0 || data === undefined || redis === undefined) throw new ConfigError(problems.join('\n'));
  return Object.freeze({
    roles,
    redis,
    ingressPort: data.SLUICE_INGRESS_PORT,
    facadePort: data.SLUICE_FACADE_PORT,
    ingressCertificate,
    facadeCertificate,
    opsPort: data.SLUICE_OPS_PORT,
    opsHost: data.SLUICE_OPS_HOST,
    rootKeys,
    oidc,
    endpoints: {
      allowedNetworks: data.SLUICE_ALLOWED_NETWORKS,
      refusedNetworks: data.SLUICE_REFUSED_NETWORKS,
      allowedPorts: data.SLUICE_ALLOWED_PORTS,
    },
    endpointConsentOrigin: data.SLUICE_ENDPOINT_CONSENT_ORIGIN,
    trustedProxies: data.SLUICE_TRUSTED_PROXIES,
    ingressRates: {
      perAddress: data.SLUICE_INGRESS_ADDRESS_LIMIT,
      perKey: data.SLUICE_INGRESS_KEY_LIMIT,
      perWorkspace: data.SLUICE_INGRESS_WORKSPACE_LIMIT,
    },
    audit: readAuditTarget(data.SLUICE_AUDIT_FILE),
    servesReference: data.SLUICE_FACADE_DOCS === 'true',
    requireInvitedEmail: data.SLUICE_INVITATION_REQUIRE_EMAIL === 'true',
    mail: readMail(data),
    logLevel: data.SLUICE_LOG_LEVEL,
    queueMaxBytes: data.SLUICE_QUEUE_MAX_BYTES,
    secretsRole: data.SLUICE_SECRETS_ROLE,
    workspaceQuota: data.SLUICE_WORKSPACE_QUOTA,
    limits: readLimits(data),
    invitedLimits: readInvitedLimits(data),
    namespace: data.SLUICE_NAMESPACE,
    instance: data.SLUICE_INSTANCE,
    shutdownDelayMs: data.SLUICE_SHUTDOWN_DELAY_SECONDS * 1_000,
    tracing,
    kubernetes: readKubernetes(env),
  });
}

type Env = Readonly<Record<string, string | undefined>>;

/** Reads the SLUICE_* variables. If a variable is invalid or unknown, the required change is added to `problems`. */
export function readVariables(env: Env, problems: string[]): EnvironmentValues | undefined {
  const names = Object.keys(env).filter(name => name.startsWith('SLUICE_') && !isServiceLink(name, env[name] ?? ''));
  for (const name of names) {
    if (name in ENVIRONMENT) continue;
    const meant = nearestName(name, Object.keys(ENVIRONMENT));
    problems.push(`${name}: unknown variable${meant === undefined ? '' : `; did you mean ${meant}?`}`);
  }
  return parseEnvironment(Object.fromEntries(names.map(name => [name, env[name]])), problems);
}

/**
 * Returns the usage message. `isUnknown` means that `word` is not a role, for example because of a misspelled command.
 */
function describeUsage(word: string | undefined, isUnknown: boolean): string {
  const usage = `usage: sluice ${ROLES.join('|')}|all. For more information, run sluice --help`;
  if (word === undefined || !isUnknown) return usage;
  const nearest = nearestName(word, [...ROLES, 'all', ...COMMAND_NAMES]);
  const hint = nearest === undefined ? '' : `. Did you mean ${nearest}?`;
  return `${JSON.stringify(word)} is not a role or command of sluice${hint}\n${usage}`;
}

/** Reads where to look for the API server. */
export function readKubernetes(env: Env): Config['kubernetes'] {
  return {
    kubeconfig: env.KUBECONFIG,
    home: env.HOME,
    serviceHost: env.KUBERNETES_SERVICE_HOST,
    servicePort: env.KUBERNETES_SERVICE_PORT,
  };
}

function given(value: string | undefined): boolean {
  return value !== undefined && value !== '';
}

function readMail(data: EnvironmentValues): MailConfig | undefined {
  if (data.SLUICE_SMTP_URL === undefined) return undefined;
  const plainText = data.SLUICE_SMTP_ALLOW_PLAIN_TEXT === 'true';
  const server = parseSmtpUrl(data.SLUICE_SMTP_URL);
  const from = parseMailbox(data.SLUICE_SMTP_FROM ?? '') ?? defaultSender(server);
  return Object.freeze({ server, from, acceptUrl: data.SLUICE_INVITATION_URL, plainText });
}
