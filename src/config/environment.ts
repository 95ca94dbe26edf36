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

/** The environment with its defaults. */
export type EnvironmentValues = z.output<typeof Environment>;

/** Checks the variables. Returns undefined if one is invalid, and adds what to change to `problems`. */
export function parseEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
  problems: string[],
): EnvironmentValues | undefined {
  const parsed = Environment.safeParse(variables, { error: messageOf });
  for (const issue of parsed.error?.issues ?? []) problems.push(`${issue.path.join('.')}: ${issue.message}`);
  return parsed.data;
}

/** Returns what to change, for variables without their own message. */
const messageOf: z.core.$ZodErrorMap = issue => {
  if (issue.code === 'invalid_type') return `must be a ${issue.format === 'safeint' ? 'whole ' : ''}number`;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}`;
  return undefined;
};
