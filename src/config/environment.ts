import { z } from 'zod';
import { parseNetwork } from '../core/delivery/network.ts';
import { parseMailbox } from '../mail/address.ts';
import { parseSmtpUrl } from '../mail/smtp-url.ts';
import { LOG_LEVELS } from '../telemetry/log.ts';

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);

function isNetwork(text: string): boolean {
  try {
    parseNetwork(text);
    return true;
  } catch {
    return false;
  }
}

/** An issuer doesn't publish secrets, so only asymmetric algorithms are allowed. */
const SIGNING_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

/**
 * Checks an issuer's URL (OpenID Connect Discovery). It must use https, unless it is a loopback address, and can't have
 * a query or a fragment.
 */
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

/** Checks the URL of a page, to which a token will be added after `#`. */
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

/**
 * All environment variables of Sluice, with their descriptions and defaults. Used to generate docs/configuration.md.
 */
export const ENVIRONMENT = {
  SLUICE_REDIS_URL: z
    .string()
    .refine(text => text.split(',').every(each => /^rediss?:\/\/[^/\s]+\/?$/.test(each.trim())), {
      message: 'must be redis://[user:password@]host:port, or rediss:// for TLS; separate several URLs with commas',
    })
    .default('redis://127.0.0.1:6379')
    .describe(
      'The URL of Redis 7 or later, such as redis://[user:password@]host:port. To use TLS, use rediss://. For a Redis Cluster, you can set several URLs, separated by commas.',
    ),
  SLUICE_INGRESS_PORT: port(8080).describe('The TCP port of the ingress role. If the value is 0, a free port is used.'),
  SLUICE_FACADE_PORT: port(8081).describe('The TCP port of the facade role. If the value is 0, a free port is used.'),
  SLUICE_OPS_PORT: port(9090).describe(
    'The TCP port that serves /metrics, /healthz and /readyz. If the value is 0, a free port is used.',
  ),
  SLUICE_ROOT_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'The path of the file that contains the root key, with at least 32 bytes. The controller, the facade and the dispatcher require the same key and do not start without it.',
    ),
  SLUICE_OIDC_ISSUERS: list
    .refine(issuers => issuers.every(isIssuer), {
      message:
        'must be https URLs without a user, a query or a fragment, such as https://login.example.com, separated by commas; you can only use http for loopback addresses',
    })
    .prefault('')
    .describe(
      'The identity providers whose access tokens are accepted by /waas, separated by commas. Each value must match the iss claim of the tokens byte by byte. This variable is required for the facade.',
    ),
  SLUICE_OIDC_AUDIENCE: z
    .string()
    .min(1)
    .optional()
    .describe('The audience (aud claim) that access tokens must contain. This variable is required for the facade.'),
  SLUICE_OIDC_ALGORITHMS: list
    .refine(names => names.length > 0 && names.every(name => SIGNING_ALGORITHMS.includes(name)), {
      message: `must be one or more of ${SIGNING_ALGORITHMS.join(', ')}, separated by commas`,
    })
    .prefault('RS256')
    .describe(
      `The signing algorithms that are accepted for access tokens, separated by commas. The supported values are ${SIGNING_ALGORITHMS.join(', ')}. Defaults to RS256.`,
    ),
  SLUICE_OIDC_CLOCK_TOLERANCE_SECONDS: z.coerce
    .number()
    .int()
    .min(0)
    .max(300)
    .default(30)
    .describe(
      'The maximum clock difference between Sluice and an issuer in seconds, in either direction. The maximum value is 300.',
    ),
  SLUICE_ALLOWED_NETWORKS: list
    .refine(networks => networks.every(isNetwork), {
      message: 'must be CIDR networks separated by commas, such as 10.0.0.0/8',
    })
    .prefault('')
    .describe(
      'A list of CIDR networks, separated by commas, that endpoints can use in addition to public addresses. By default, only public addresses are allowed.',
    ),
  SLUICE_SMTP_URL: z
    .string()
    .refine(isSmtpUrl, {
      message:
        'must be smtp://[user:password@]host[:port], or smtps:// for TLS; percent-encode the user and the password',
    })
    .optional()
    .describe(
      'The mail server for invitations, such as smtp://[user:password@]host[:port]. With smtp://, the default port is 587 and the server must support STARTTLS, unless it runs on the same machine. To use TLS from the start, use smtps://, which has the default port 465. If this variable is not set, the controller writes the invitation token to the Secret <integration>-invitation.',
    ),
  SLUICE_SMTP_ALLOW_PLAIN_TEXT: z
    .enum(['true', 'false'])
    .default('false')
    .describe(
      'If set to true, invitations and the password in SLUICE_SMTP_URL are sent unencrypted if an smtp:// server does not support STARTTLS. An attacker on the network can then read both of them and can also disable STARTTLS.',
    ),
  SLUICE_SMTP_FROM: z
    .string()
    .max(320)
    .refine(text => parseMailbox(text) !== undefined, {
      message: 'must be an address or Name <address>, such as Sluice <sluice@example.com>',
    })
    .optional()
    .describe(
      'The sender of invitations, in the format address or Name <address>. Defaults to sluice@ followed by the host of SLUICE_SMTP_URL.',
    ),
  SLUICE_INVITATION_URL: z
    .string()
    .max(500)
    .refine(isPage, {
      message: 'must be an http or https URL without a user or a fragment, such as https://app.example.com/invitations',
    })
    .optional()
    .describe(
      'The page that invitations link to. Sluice appends #token=<token> to the URL, and browsers do not send this part to servers. If this variable is not set, the email explains how to accept the invitation with the REST API.',
    ),
  SLUICE_LOG_LEVEL: z
    .enum(LOG_LEVELS)
    .default('info')
    .describe(`The minimum level of log messages. The supported values are ${LOG_LEVELS.join(', ')}.`),
  SLUICE_QUEUE_MAX_BYTES: z.coerce
    .number()
    .int()
    .min(1_048_576)
    .default(1_073_741_824)
    .describe(
      'The quota of a stream in bytes. The size of an event includes its body, its metadata (id, type, content type and forwarded headers), its group key and 400 bytes of overhead. If a stream reaches its quota, ingress responds with 429. Defaults to 1 GiB.',
    ),
  SLUICE_NAMESPACE: z
    .string()
    .regex(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
      'must be a valid namespace name with lowercase letters, digits and hyphens, such as sluice-system',
    )
    .default('sluice-system')
    .describe("The namespace of the controller's Lease."),
  SLUICE_SHUTDOWN_DELAY_SECONDS: z.coerce
    .number()
    .min(0)
    .max(600)
    .default(5)
    .describe(
      'The number of seconds that ingress and the facade continue to serve requests after SIGTERM. During this time, they are not ready, but a Service can still send requests to them. You should set terminationGracePeriodSeconds of the pod to this value plus 25. SIGINT skips the delay.',
    ),
} as const;

const Environment = z.object(ENVIRONMENT);

/** Environment after applying the defaults. */
export type EnvironmentValues = z.output<typeof Environment>;

/** Checks the variables. If any of them is invalid, returns undefined and adds what needs to change to `problems`. */
export function parseEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
  problems: string[],
): EnvironmentValues | undefined {
  const parsed = Environment.safeParse(variables, { error: messageOf });
  for (const issue of parsed.error?.issues ?? []) problems.push(`${issue.path.join('.')}: ${issue.message}`);
  return parsed.data;
}

/** Returns what needs to change, for variables without a custom message. */
const messageOf: z.core.$ZodErrorMap = issue => {
  if (issue.code === 'invalid_type') return `must be a ${issue.format === 'safeint' ? 'whole ' : ''}number`;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}`;
  return undefined;
};
