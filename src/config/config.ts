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

/** What is signed with the private half of a pair: an issuer publishes no secrets. */
const SIGNING_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

/** An issuer as OpenID Connect Discovery has it: https without query and fragment; http on this machine only. */
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

/** A page that a token can be added to behind `#`. */
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

/** Every environment variable of Sluice: name, meaning, default. The reference page is made from this table. */
export const ENVIRONMENT = {
  SLUICE_REDIS_URL: z
    .string()
    .refine(text => text.split(',').every(each => /^rediss?:\/\/[^/\s]+\/?$/.test(each.trim())), {
      message: 'has to be redis://[user:password@]host:port (rediss:// for TLS), several separated by commas',
    })
    .default('redis://127.0.0.1:6379')
    .describe(
      'Redis 7 or newer: redis://[user:password@]host:port, rediss:// for TLS; several separated by commas for a Cluster.',
    ),
  SLUICE_INGRESS_PORT: port(8080).describe('TCP port of the ingress role; 0 takes a free one.'),
  SLUICE_FACADE_PORT: port(8081).describe('TCP port of the facade role; 0 takes a free one.'),
  SLUICE_OPS_PORT: port(9090).describe('TCP port of /metrics, /healthz and /readyz; 0 takes a free one.'),
  SLUICE_ROOT_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File with the root key, 32 bytes or more. Controller, facade and dispatcher need the same one, and do not start without it.',
    ),
  SLUICE_OIDC_ISSUERS: list
    .refine(issuers => issuers.every(isIssuer), {
      message: 'has to be https URLs without user, query and fragment, separated by commas; http for loopback only',
    })
    .prefault('')
    .describe(
      'Identity providers whose tokens open /waas, separated by commas: each as its tokens say it in iss, byte for byte. Needed by the facade.',
    ),
  SLUICE_OIDC_AUDIENCE: z
    .string()
    .min(1)
    .optional()
    .describe('What tokens have to name as their audience (aud). Needed by the facade.'),
  SLUICE_OIDC_ALGORITHMS: list
    .refine(names => names.length > 0 && names.every(name => SIGNING_ALGORITHMS.includes(name)), {
      message: `has to be one or more of ${SIGNING_ALGORITHMS.join(', ')}, separated by commas`,
    })
    .prefault('RS256')
    .describe(`Signing algorithms of tokens, separated by commas: ${SIGNING_ALGORITHMS.join(', ')}. Default RS256.`),
  SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: z.coerce
    .number()
    .int()
    .min(0)
    .max(300)
    .default(30)
    .describe('How far the clock of an issuer may be off, either way, in seconds; at most 300.'),
  SLUICE_ALLOWED_NETWORKS: list
    .refine(networks => networks.every(isNetwork), {
      message: 'has to be CIDR networks separated by commas, as 10.0.0.0/8',
    })
    .prefault('')
    .describe('CIDR networks, separated by commas, that endpoints may use besides public addresses. Default: none.'),
  SLUICE_SMTP_URL: z
    .string()
    .refine(isSmtpUrl, {
      message: 'has to be smtp://[user:password@]host[:port], or smtps:// for TLS; user and password percent-encoded',
    })
    .optional()
    .describe(
      'Mail server for invitations: smtp://[user:password@]host[:port] (587; STARTTLS, which the server has to offer unless it is on this machine), smtps:// for TLS from the start (465). Without it the controller writes the token into the Secret <integration>-invitation.',
    ),
  SLUICE_SMTP_ALLOW_PLAIN_TEXT: z
    .enum(['true', 'false'])
    .default('false')
    .describe(
      'true sends invitations, and the password of SLUICE_SMTP_URL, unencrypted where a server of smtp:// does not offer STARTTLS: whoever stands in between can read both, and can remove the offer.',
    ),
  SLUICE_SMTP_FROM: z
    .string()
    .max(320)
    .refine(text => parseMailbox(text) !== undefined, { message: 'has to be address or Name <address>' })
    .optional()
    .describe('Sender of invitations: address or Name <address>. Default: sluice@ the host of SLUICE_SMTP_URL.'),
  SLUICE_INVITATION_URL: z
    .string()
    .max(500)
    .refine(isPage, { message: 'has to be an http or https URL without user and fragment' })
    .optional()
    .describe(
      'Page that invitations link to, with #token=<token> added, which no server sees. Without it the mail says how to accept over REST.',
    ),
  SLUICE_LOG_LEVEL: z
    .enum(LOG_LEVELS)
    .default('info')
    .describe(`Least level that is logged: ${LOG_LEVELS.join(', ')}.`),
  SLUICE_QUEUE_MAX_BYTES: z.coerce
    .number()
    .int()
    .min(1_048_576)
    .default(1_073_741_824)
    .describe(
      'Bytes of stored events that one queue may hold: of each its body, its metadata (id, type, content type, forwarded headers) and its group key, and 400 for what Redis keeps around them; beyond it ingress answers 429. Default 1 GiB.',
    ),
  SLUICE_NAMESPACE: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'has to be the name of a namespace: lower-case letters, digits and -')
    .default('sluice-system')
    .describe("Namespace of the controller's Lease."),
  SLUICE_SHUTDOWN_DELAY_SECONDS: z.coerce
    .number()
    .min(0)
    .max(600)
    .default(5)
    .describe(
      'How long ingress and facade go on serving after SIGTERM, in seconds, not ready any more: until then their Service may send requests. The terminationGracePeriodSeconds of a pod has to be 25 more. SIGINT does not wait.',
    ),
} as const;

const Environment = z.object(ENVIRONMENT);

/** Whose tokens the facade takes. */
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
  /** The key itself; undefined when no role needs it. */
  readonly rootKey: Uint8Array | undefined;
  /** Undefined when no role needs it. */
  readonly oidc: OidcConfig | undefined;
  readonly allowedNetworks: readonly string[];
  /** Undefined: there is no mail server. */
  readonly mail: MailConfig | undefined;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly queueMaxBytes: number;
  readonly namespace: string;
  /** How long a process that takes requests goes on serving after SIGTERM. */
  readonly shutdownDelayMs: number;
  /** Undefined: nothing is traced. */
  readonly tracing: TracingConfig | undefined;
  /** Path of a kubeconfig; undefined: in-cluster or the client's own default. */
  readonly kubeconfig: string | undefined;
}

/** A configuration that cannot be used; the message names each variable and says what to change. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const NEEDS_OIDC: readonly Role[] = ['facade'];
const NEEDS_ROOT_KEY: readonly Role[] = ['controller', 'facade', 'dispatcher'];

/**
 * Reads `argv` (one role, or `all`) and the environment; the only place that does. Unknown SLUICE_* variables are an
 * error, because a misspelt one would silently leave a default in force; those that Kubernetes sets for Services are not ours.
 */
export function readConfig(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const [word, ...rest] = argv;
  // Who has no identity provider can do without REST: everything is said with kubectl then.
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
    problems.push('SLUICE_OIDC_ISSUERS: needed, the identity provider (for example: https://login.example.com)');
  }
  if (audience === undefined) {
    problems.push('SLUICE_OIDC_AUDIENCE: needed, the audience that tokens are issued for (for example: sluice)');
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
