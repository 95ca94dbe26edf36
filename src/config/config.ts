import { z } from 'zod';
import { parseNetwork } from '../core/delivery/network.ts';
import { nearestName } from '../core/problems/nearest-name.ts';
import { type Mailbox, parseMailbox } from '../mail/address.ts';
import { defaultSender, parseSmtpUrl, type SmtpServer } from '../mail/smtp-url.ts';
import { LOG_LEVELS } from '../telemetry/log.ts';
import type { TracingConfig } from '../telemetry/tracing-config.ts';
import { messageOf } from './environment-messages.ts';
import { readRootKey } from './root-key-file.ts';
import { isServiceLink } from './service-links.ts';
import { readTracing } from './tracing-environment.ts';

export const ROLES = ['controller', 'facade', 'ingress', 'router', 'dispatcher'] as const;
export type Role = (typeof ROLES)[number];

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);

function isNetwork(text: string): boolean {
  try {
    parseNetwork(text);
    return true;
  } catch {
    return false;
  }
}

/** Asymmetric algorithms only: an issuer publishes no secrets. */
const SIGNING_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

/** Checks an issuer by OpenID Connect Discovery: https without query and fragment; http for loopback only. */
function isIssuer(text: string): boolean {
  if (!URL.canParse(text) || !/^[!-~]{1,512}$/.test(text) || /[?#\\]/.test(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.[0-9.]+|\[::1\])$/.test(hostname));
}

function isSmtpUrl(text: string): boolean {
  try {
    parseSmtpUrl(text);
    return true;
  } catch {
    return false;
  }
}

/** Checks a page URL that a token can be appended to after `#`. */
function isPage(text: string): boolean {
  const url = URL.parse(text);
  return /^https?:$/.test(url?.protocol ?? '') && url?.username === '' && url.password === '' && !text.includes('#');
}

const list = z.string().transform(text =>
  text
    .split(',')
    .map(each => each.trim())
    .filter(each => each !== ''),
);

/** Every environment variable of Sluice: name, meaning, default. Renders docs/configuration.md. */
export const ENVIRONMENT = {
  SLUICE_REDIS_URL: z
    .string()
    .refine(text => text.split(',').every(each => /^rediss?:\/\/[^/\s]+\/?$/.test(each.trim())), {
      message: 'must be redis://[user:password@]host:port (rediss:// for TLS), several separated by commas',
    })
    .default('redis://127.0.0.1:6379')
    .describe(
      'URL of Redis 7 or newer: redis://[user:password@]host:port, rediss:// for TLS. For a Cluster, several separated by commas.',
    ),
  SLUICE_INGRESS_PORT: port(8080).describe('TCP port of the ingress role; 0 picks a free one.'),
  SLUICE_FACADE_PORT: port(8081).describe('TCP port of the facade role; 0 picks a free one.'),
  SLUICE_OPS_PORT: port(9090).describe('TCP port of /metrics, /healthz and /readyz; 0 picks a free one.'),
  SLUICE_ROOT_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File with the root key, 32 bytes or more. Controller, facade and dispatcher need the same key, and do not start without it.',
    ),
  SLUICE_OIDC_ISSUERS: list
    .refine(issuers => issuers.every(isIssuer), {
      message:
        'must be https URLs without user, query and fragment, such as https://login.example.com, separated by commas; http for loopback only',
    })
    .prefault('')
    .describe(
      'Identity providers whose access tokens open /waas, separated by commas. Each must equal the iss claim of its tokens, byte for byte. Required by the facade.',
    ),
  SLUICE_OIDC_AUDIENCE: z
    .string()
    .min(1)
    .optional()
    .describe('Audience (aud claim) that access tokens must have. Required by the facade.'),
  SLUICE_OIDC_ALGORITHMS: list
    .refine(names => names.length > 0 && names.every(name => SIGNING_ALGORITHMS.includes(name)), {
      message: `must be one or more of ${SIGNING_ALGORITHMS.join(', ')}, separated by commas`,
    })
    .prefault('RS256')
    .describe(
      `Signing algorithms of access tokens, separated by commas: ${SIGNING_ALGORITHMS.join(', ')}. Default RS256.`,
    ),
  SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: z.coerce
    .number()
    .int()
    .min(0)
    .max(300)
    .default(30)
    .describe('Tolerated clock difference to an issuer, in seconds, either way; at most 300.'),
  SLUICE_ALLOWED_NETWORKS: list
    .refine(networks => networks.every(isNetwork), {
      message: 'must be CIDR networks separated by commas, such as 10.0.0.0/8',
    })
    .prefault('')
    .describe(
      'CIDR networks, separated by commas, that endpoints may use in addition to public addresses. Default: none.',
    ),
  SLUICE_SMTP_URL: z
    .string()
    .refine(isSmtpUrl, {
      message: 'must be smtp://[user:password@]host[:port], or smtps:// for TLS; percent-encode user and password',
    })
    .optional()
    .describe(
      'Mail server for invitations: smtp://[user:password@]host[:port] (port 587, with STARTTLS, which the server must offer unless it is on this machine), or smtps:// for TLS from the start (port 465). Without it the controller writes the invitation token into the Secret <integration>-invitation.',
    ),
  SLUICE_SMTP_ALLOW_PLAIN_TEXT: z
    .enum(['true', 'false'])
    .default('false')
    .describe(
      'true sends invitations and the password of SLUICE_SMTP_URL unencrypted if an smtp:// server does not offer STARTTLS. An attacker on the network can then read both, and can suppress the offer.',
    ),
  SLUICE_SMTP_FROM: z
    .string()
    .max(320)
    .refine(text => parseMailbox(text) !== undefined, {
      message: 'must be an address or Name <address>, such as Sluice <sluice@example.com>',
    })
    .optional()
    .describe('Sender of invitations: address or Name <address>. Default: sluice@ and the host of SLUICE_SMTP_URL.'),
  SLUICE_INVITATION_URL: z
    .string()
    .max(500)
    .refine(isPage, {
      message: 'must be an http or https URL without user and fragment, such as https://app.example.com/invitations',
    })
    .optional()
    .describe(
      'Page that invitations link to. Sluice appends #token=<token>, which browsers do not send to servers. Without it the mail explains how to accept over REST.',
    ),
  SLUICE_LOG_LEVEL: z
    .enum(LOG_LEVELS)
    .default('info')
    .describe(`Lowest level that is logged: ${LOG_LEVELS.join(', ')}.`),
  SLUICE_QUEUE_MAX_BYTES: z.coerce
    .number()
    .int()
    .min(1_048_576)
    .default(1_073_741_824)
    .describe(
      'Quota of one stream, in bytes. Each event counts with its body, metadata (id, type, content type, forwarded headers), group key and 400 bytes of overhead. Above the quota ingress answers 429. Default 1 GiB.',
    ),
  SLUICE_NAMESPACE: z
    .string()
    .regex(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
      'must be the name of a namespace: lower-case letters, digits and -, such as sluice-system',
    )
    .default('sluice-system')
    .describe("Namespace of the controller's Lease."),
  SLUICE_SHUTDOWN_DELAY_SECONDS: z.coerce
    .number()
    .min(0)
    .max(600)
    .default(5)
    .describe(
      'Seconds that ingress and facade keep serving after SIGTERM while they report not ready, because their Service may still send requests. Set terminationGracePeriodSeconds of the pod to 25 more. SIGINT skips the delay.',
    ),
} as const;

const Environment = z.object(ENVIRONMENT);

/** Access tokens that the facade accepts. */
export interface OidcConfig {
  readonly issuers: readonly string[];
  readonly audience: string;
  readonly algorithms: readonly string[];
  readonly clockToleranceSeconds: number;
}

/** How invitations are mailed. */
export interface MailConfig {
  readonly server: SmtpServer;
  readonly from: Mailbox;
  readonly acceptUrl: string | undefined;
  /** Whether mail may go without TLS to a server that is not on this machine. */
  readonly plainText: boolean;
}

export interface Config {
  readonly roles: readonly Role[];
  readonly redisUrl: string;
  readonly ingressPort: number;
  readonly facadePort: number;
  readonly opsPort: number;
  /** The key itself; undefined if no role needs it. */
  readonly rootKey: Uint8Array | undefined;
  /** Undefined if no role needs it. */
  readonly oidc: OidcConfig | undefined;
  readonly allowedNetworks: readonly string[];
  /** Undefined: there is no mail server. */
  readonly mail: MailConfig | undefined;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly queueMaxBytes: number;
  readonly namespace: string;
  /** How long a process that accepts requests keeps serving after SIGTERM. */
  readonly shutdownDelayMs: number;
  /** Undefined: nothing is traced. */
  readonly tracing: TracingConfig | undefined;
  /** Path of a kubeconfig; undefined: in-cluster or the client's own default. */
  readonly kubeconfig: string | undefined;
}

/** An invalid configuration. The message names each variable and what to change. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const NEEDS_OIDC: readonly Role[] = ['facade'];
const NEEDS_ROOT_KEY: readonly Role[] = ['controller', 'facade', 'dispatcher'];

/**
 * Reads `argv` (one role, or `all`) and the environment; nothing else reads them. Unknown SLUICE_* variables are
 * errors, because a misspelt one would silently keep the default. Ignores variables that Kubernetes sets for Services.
 */
export function readConfig(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const [word, ...rest] = argv;
  // Without an identity provider `all` runs without REST; kubectl does everything then.
  const all = ROLES.filter(role => role !== 'facade' || given(env.SLUICE_OIDC_ISSUERS));
  const roles = word === 'all' ? all : ROLES.filter(role => role === word);
  if (roles.length === 0 || rest.length > 0) problems.push(`usage: sluice ${ROLES.join('|')}|all; see sluice --help`);
  const names = Object.keys(env).filter(name => name.startsWith('SLUICE_') && !isServiceLink(name, env[name] ?? ''));
  for (const name of names) {
    if (name in ENVIRONMENT) continue;
    const meant = nearestName(name, Object.keys(ENVIRONMENT));
    problems.push(`${name}: no such variable${meant === undefined ? '' : `; did you mean ${meant}?`}`);
  }
  const parsed = Environment.safeParse(Object.fromEntries(names.map(name => [name, env[name]])), { error: messageOf });
  if (!parsed.success) {
    for (const issue of parsed.error.issues) problems.push(`${issue.path.join('.')}: ${issue.message}`);
  }
  let rootKey: Uint8Array | undefined;
  const needsRootKey = roles.some(role => NEEDS_ROOT_KEY.includes(role));
  if (parsed.success && needsRootKey) rootKey = readRootKey(parsed.data.SLUICE_ROOT_KEY_FILE, problems);
  let oidc: OidcConfig | undefined;
  if (parsed.success && roles.some(role => NEEDS_OIDC.includes(role))) oidc = readOidc(parsed.data, problems);
  const tracing = readTracing(env, roles, problems);
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems.join('\n'));
  const { data } = parsed;
  return Object.freeze({
    roles,
    redisUrl: data.SLUICE_REDIS_URL,
    ingressPort: data.SLUICE_INGRESS_PORT,
    facadePort: data.SLUICE_FACADE_PORT,
    opsPort: data.SLUICE_OPS_PORT,
    rootKey,
    oidc,
    allowedNetworks: data.SLUICE_ALLOWED_NETWORKS,
    mail: readMail(data),
    logLevel: data.SLUICE_LOG_LEVEL,
    queueMaxBytes: data.SLUICE_QUEUE_MAX_BYTES,
    namespace: data.SLUICE_NAMESPACE,
    shutdownDelayMs: data.SLUICE_SHUTDOWN_DELAY_SECONDS * 1_000,
    tracing,
    kubeconfig: env.KUBECONFIG,
  });
}

function readOidc(data: z.output<typeof Environment>, problems: string[]): OidcConfig | undefined {
  const { SLUICE_OIDC_ISSUERS: issuers, SLUICE_OIDC_AUDIENCE: audience } = data;
  if (issuers.length === 0) {
    problems.push(
      'SLUICE_OIDC_ISSUERS: needed by the facade; set the identity provider (for example: https://login.example.com)',
    );
  }
  if (audience === undefined) {
    problems.push(
      'SLUICE_OIDC_AUDIENCE: needed by the facade; set the audience of access tokens (for example: sluice)',
    );
  }
  if (issuers.length === 0 || audience === undefined) return undefined;
  return Object.freeze({
    issuers: Object.freeze([...new Set(issuers)]),
    audience,
    algorithms: Object.freeze([...new Set(data.SLUICE_OIDC_ALGORITHMS)]),
    clockToleranceSeconds: data.SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS,
  });
}

function given(value: string | undefined): boolean {
  return value !== undefined && value !== '';
}

function readMail(data: z.output<typeof Environment>): MailConfig | undefined {
  if (data.SLUICE_SMTP_URL === undefined) return undefined;
  const plainText = data.SLUICE_SMTP_ALLOW_PLAIN_TEXT === 'true';
  const server = parseSmtpUrl(data.SLUICE_SMTP_URL);
  const from = parseMailbox(data.SLUICE_SMTP_FROM ?? '') ?? defaultSender(server);
  return Object.freeze({ server, from, acceptUrl: data.SLUICE_INVITATION_URL, plainText });
}
