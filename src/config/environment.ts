import { isIP } from 'node:net';
import { z } from 'zod';
import { DEFAULT_INSTANCE, INSTANCE } from '../api/instance.ts';
import { parseNetwork } from '../core/delivery/network.ts';
import { parseMailbox } from '../mail/address.ts';
import { parseSmtpUrl } from '../mail/smtp-url.ts';
import { LOG_LEVELS } from '../telemetry/log.ts';
import { FACADE_ENVIRONMENT } from './facade-environment.ts';
import { LIMITS_ENVIRONMENT } from './limits-environment.ts';
import { list } from './lists.ts';
import { OIDC_ENVIRONMENT } from './oidc-environment.ts';
import { REDIS_ENVIRONMENT } from './redis-environment.ts';
import { TLS_ENVIRONMENT } from './tls-environment.ts';

const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);

function isPort(text: string): boolean {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535;
}

function isNetwork(text: string): boolean {
  try {
    parseNetwork(text);
    return true;
  } catch {
    return false;
  }
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

/** Events per second on a replica of ingress. */
const eventRate = (fallback: number) => z.coerce.number().int().min(0).max(1_000_000).default(fallback);

/** Checks a list of proxies. A network of all addresses would let clients choose their address. */
function areProxies(networks: readonly string[]): boolean {
  return networks.every(network => isNetwork(network) && !/\/0+$/.test(network));
}

/** Limits by resource. Numbers are accepted because YAML turns a quantity without a unit into one. */
const QUOTA = z.record(
  z.string().min(1),
  z.union([z.string().regex(/^\d+(\.\d+)?([a-zA-Z]{1,2})?$/), z.int().min(0)]).transform(String),
);

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * All environment variables of Sluice, with their descriptions and defaults. Used to generate docs/configuration.md.
 */
export const ENVIRONMENT = {
  ...REDIS_ENVIRONMENT,
  SLUICE_INGRESS_PORT: port(8080).describe('TCP port used by the ingress role. Set to 0 to use any free port.'),
  SLUICE_FACADE_PORT: port(8081).describe('TCP port used by the facade role. Set to 0 to use any free port.'),
  SLUICE_OPS_PORT: port(9090).describe(
    'TCP port for serving /metrics, /healthz, and /readyz. Set to 0 to use any free port.',
  ),
  SLUICE_OPS_HOST: z
    .string()
    .refine(text => isIP(text) !== 0, { message: 'must be an IP address of this machine, such as 127.0.0.1 or ::1' })
    .optional()
    .describe(
      'IP address at which SLUICE_OPS_PORT listens, such as 127.0.0.1. In a pod, it must be an address that Prometheus and the probes of the kubelet can reach, so leave it out or use the address of the pod. By default, the port listens at all addresses.',
    ),
  ...TLS_ENVIRONMENT,
  SLUICE_ROOT_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Path to a file containing the root key, which must be at least 32 bytes long. Newer root keys are in files beside it that have a number from 2 after the name, such as `root.key.2`. The controller, facade, and dispatcher need the same keys, and do not start without them. The files are read again every 5 seconds.',
    ),
  SLUICE_SECRETS_ROLE: z
    .string()
    .regex(
      /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/,
      'must be the name of a ClusterRole, such as sluice-workspace-secrets',
    )
    .optional()
    .describe(
      'ClusterRole that lets the controller read and write Secrets in a namespace. If set, the controller binds it in the namespace of each workspace, and watches each of these namespaces on its own. This is meant for up to 200 workspaces. If omitted, the controller needs this ClusterRole in the whole cluster.',
    ),
  SLUICE_WORKSPACE_QUOTA: z
    .string()
    .transform((text, context) => {
      const parsed = QUOTA.safeParse(parseJson(text));
      if (parsed.success) return parsed.data;
      const message =
        'must be a JSON object with a limit for each resource, such as {"count/activations.sluice.dev": "10000"}';
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .optional()
    .describe(
      'Limits for each workspace, as a JSON object such as {"count/activations.sluice.dev": "10000"}. The controller writes them to the ResourceQuota sluice in the namespace of each workspace. Limits that you have changed there are kept. Within two minutes, it restores limits that you have removed, or the whole quota. If omitted, only workspaces whose Account has spec.limits get a quota, and existing ones stay as they are.',
    ),
  ...OIDC_ENVIRONMENT,
  SLUICE_ALLOWED_NETWORKS: list
    .refine(networks => networks.every(isNetwork), {
      message: 'must be CIDR networks separated by commas, such as 10.0.0.0/8',
    })
    .prefault('')
    .describe(
      'Comma-separated list of CIDR networks in which endpoints are allowed, in addition to public addresses. By default, endpoints can only use public addresses.',
    ),
  SLUICE_REFUSED_NETWORKS: list
    .refine(networks => networks.every(isNetwork), {
      message: 'must be CIDR networks separated by commas, such as 198.18.0.7/32 or 2001:db8:64::/96',
    })
    .prefault('')
    .describe(
      'Comma-separated list of CIDR networks in which endpoints are never allowed, in addition to addresses that are not public. They take precedence over SLUICE_ALLOWED_NETWORKS. List the public addresses of your own API servers and load balancers, and your own NAT64 prefix. Set it for the controller and the dispatcher. By default, the list is empty.',
    ),
  SLUICE_ALLOWED_PORTS: list
    .refine(ports => ports.every(isPort), {
      message: 'must be TCP ports between 1 and 65535 separated by commas, such as 443,8443',
    })
    .transform(ports => ports.map(Number))
    .prefault('')
    .describe(
      'Comma-separated list of TCP ports that endpoints can use, such as 443,8443. Set it for the controller and the dispatcher. By default, endpoints can use any port.',
    ),
  SLUICE_ENDPOINT_CONSENT_ORIGIN: z
    .string()
    .max(253)
    .regex(
      /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$/,
      'must be a DNS name in lower case, such as events.example.com',
    )
    .optional()
    .describe(
      'DNS name of this installation, such as events.example.com. If set, the dispatcher asks each endpoint whether it agrees to receive events from this name before it sends any, and again every hour. An endpoint agrees by answering an OPTIONS request with the header WebHook-Allowed-Origin. Until then, attempts fail with `consent_missing` and are retried like any other failure, up to the dead letter. If omitted, endpoints are not asked.',
    ),
  SLUICE_TRUSTED_PROXIES: list
    .transform(networks => (networks.length === 0 ? undefined : networks.join() === 'none' ? [] : networks))
    .refine(networks => networks === undefined || areProxies(networks), {
      message:
        'must be the CIDR networks of your proxies separated by commas, such as 10.0.0.0/8 (but not /0, which is all addresses), or none if clients connect directly',
    })
    .optional()
    .describe(
      'Comma-separated list of CIDR networks of the proxies and load balancers in front of ingress and the facade. For connections from one of these, the address of the client is the rightmost one in X-Forwarded-For that is not in the list. Set to none if clients connect directly. If omitted, addresses are not used, and there are no limits by address.',
    ),
  SLUICE_INGRESS_ADDRESS_LIMIT: eventRate(50_000).describe(
    'Number of events per second that a replica of ingress accepts from an address (or from a /64 network of IPv6). An event counts once for each started 16 KiB of its body. Looking up a key that is not known to be valid counts as 100 events unless the key is valid. Any more are rejected with 429. Requires SLUICE_TRUSTED_PROXIES. Set to 0 for no limit. Defaults to 50,000, which is more than a replica can store.',
  ),
  SLUICE_INGRESS_KEY_LIMIT: eventRate(0).describe(
    'Number of events per second that a replica of ingress accepts with the same ingress key. An event counts once for each started 16 KiB of its body. Any more are rejected with 429. Sandbox requests are counted separately. Defaults to 0, which means no limit.',
  ),
  SLUICE_INGRESS_WORKSPACE_LIMIT: eventRate(0).describe(
    'Number of events per second that a replica of ingress accepts for a workspace, across all of its keys and streams. An event counts once for each started 16 KiB of its body. Any more are rejected with 429. Sandbox requests are counted separately. Defaults to 0, which means no limit.',
  ),
  ...LIMITS_ENVIRONMENT,
  SLUICE_SMTP_URL: z
    .string()
    .refine(isSmtpUrl, {
      message:
        'must be smtp://[user:password@]host[:port], or smtps:// for TLS; percent-encode the user and the password',
    })
    .optional()
    .describe(
      'Mail server used for invitations, e.g. smtp://[user:password@]host[:port]. For smtp:// the port defaults to 587, and STARTTLS must be supported unless the server runs on the same machine. Use smtps:// (port 465 unless specified) for connections that are encrypted from the start. When omitted, invitation tokens will be written to the Secret <integration>-invitation instead.',
    ),
  SLUICE_SMTP_ALLOW_PLAIN_TEXT: z
    .enum(['true', 'false'])
    .default('false')
    .describe(
      'Set to true to fall back to unencrypted connections for smtp:// servers without STARTTLS support. Note that this exposes the invitations and the password in SLUICE_SMTP_URL to attackers on the network, because they can disable STARTTLS.',
    ),
  SLUICE_SMTP_FROM: z
    .string()
    .max(320)
    .refine(text => parseMailbox(text) !== undefined, {
      message: 'must be an address or Name <address>, such as Sluice <sluice@example.com>',
    })
    .optional()
    .describe(
      'Sender address for invitations, specified as either address or Name <address>. Defaults to sluice@ followed by the SLUICE_SMTP_URL host.',
    ),
  SLUICE_INVITATION_URL: z
    .string()
    .max(500)
    .refine(isPage, {
      message: 'must be an http or https URL without a user or a fragment, such as https://app.example.com/invitations',
    })
    .optional()
    .describe(
      'Page to link to from invitations. The token is appended to this URL as #token=<token>, a part that is never sent to servers by browsers. When omitted, the email will instead include instructions for accepting the invitation through the REST API.',
    ),
  ...FACADE_ENVIRONMENT,
  SLUICE_LOG_LEVEL: z
    .enum(LOG_LEVELS)
    .default('info')
    .describe(`Minimum log level. Can be one of ${LOG_LEVELS.join(', ')}.`),
  SLUICE_QUEUE_MAX_BYTES: z.coerce
    .number()
    .int()
    .min(1_048_576)
    .default(1_073_741_824)
    .describe(
      'Storage quota per stream in bytes, after which ingress responds with 429. Event sizes are calculated from the body, metadata (id, type, content type, and forwarded headers), and group key, plus 250 bytes, plus 100 bytes if the producer provided the id, plus 110 bytes for each receiving integration. Defaults to 1 GiB.',
    ),
  SLUICE_NAMESPACE: z
    .string()
    .regex(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
      'must be a valid namespace name with lowercase letters, digits and hyphens, such as sluice-system',
    )
    .optional()
    .describe(
      "Namespace in which the controller's Lease should be created. Defaults to the namespace of the pod or of the kubeconfig's current context, or else to sluice-system.",
    ),
  SLUICE_INSTANCE: z
    .string()
    .refine(text => text === DEFAULT_INSTANCE || INSTANCE.test(text), {
      message: 'must be a name of up to 32 lowercase letters, digits and hyphens, such as blue',
    })
    .default(DEFAULT_INSTANCE)
    .describe(
      'Name of this installation, in a cluster with more than one. It is responsible for the Accounts and Workspaces whose spec.instance has this value, and for everything in the namespaces of these Workspaces. Defaults to the installation without a name, which is responsible for those without spec.instance. Must be the same for all roles, and cannot be changed later, because the data in Redis belongs to it.',
    ),
  SLUICE_SHUTDOWN_DELAY_SECONDS: z.coerce
    .number()
    .min(0)
    .max(600)
    .default(5)
    .describe(
      "Number of seconds during which ingress and the facade keep serving requests after receiving SIGTERM. They're no longer ready at this point, but may still be sent requests by a Service. We recommend setting the pod's terminationGracePeriodSeconds to 25 more than this value. There is no delay for SIGINT.",
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
