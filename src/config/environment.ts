import { isIP } from 'node:net';
import { z } from 'zod';
import { DEFAULT_INSTANCE, INSTANCE, MUST_BE_INSTANCE } from '../api/instance.ts';
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
import { WORKSPACE_QUOTA } from './workspace-quota.ts';

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

/** Checks a page URL. A token will be appended to this URL after `#`. */
function isPage(text: string): boolean {
  const url = URL.parse(text);
  return /^https?:$/.test(url?.protocol ?? '') && url?.username === '' && url.password === '' && !text.includes('#');
}

/** Events per second on an ingress replica. */
const eventRate = (fallback: number) => z.coerce.number().int().min(0).max(1_000_000).default(fallback);

/** Checks the list of proxies. If the network included all addresses, clients could choose an arbitrary address. */
function areProxies(networks: readonly string[]): boolean {
  return networks.every(network => isNetwork(network) && !/\/0+$/.test(network));
}

/**
 * All environment variables of Sluice, with their descriptions and defaults. Used to generate docs/configuration.md.
 */
export const ENVIRONMENT = {
  ...REDIS_ENVIRONMENT,
  SLUICE_INGRESS_PORT: port(8080).describe('The TCP port of the ingress role. To use any free port, set this to 0.'),
  SLUICE_FACADE_PORT: port(8081).describe('The TCP port of the facade role. To use any free port, set this to 0.'),
  SLUICE_OPS_PORT: port(9090).describe(
    'The TCP port that serves /metrics, /healthz, and /readyz. To use any free port, set this to 0.',
  ),
  SLUICE_OPS_HOST: z
    .string()
    .refine(text => isIP(text) !== 0, { message: 'must be an IP address of this machine, such as 127.0.0.1 or ::1' })
    .optional()
    .describe(
      "The IP address used by SLUICE_OPS_PORT, such as 127.0.0.1. In a pod, omit it or use the pod's address, because Prometheus and the probes of the kubelet need to reach it. By default, the port listens on all addresses.",
    ),
  ...TLS_ENVIRONMENT,
  SLUICE_ROOT_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .describe(
      'The path to a file with the root key, which has at least 32 bytes. Newer root keys are in files with the same name followed by a number starting at 2, such as `root.key.2`. The controller, facade, and dispatcher need the same keys and do not start without them. The files are reloaded every 5 seconds.',
    ),
  SLUICE_SECRETS_ROLE: z
    .string()
    .regex(
      /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/,
      'must be the name of a ClusterRole, such as sluice-workspace-secrets',
    )
    .optional()
    .describe(
      'Set this to the ClusterRole for Secrets to limit the controller to the workspace Secrets. The controller then binds the role in the namespace of each workspace and uses a watch for each namespace. For this reason, we recommend this for up to 200 workspaces. By default, the controller needs the role in the whole cluster.',
    ),
  SLUICE_WORKSPACE_QUOTA: WORKSPACE_QUOTA.optional().describe(
    'The limits for each workspace, as a JSON object such as {"count/activations.sluice.dev": "10000"}. The controller adds these limits to the ResourceQuota sluice in the namespace of each workspace. The controller keeps limits that you change in the ResourceQuota. Limits that you remove are restored within two minutes. By default, only workspaces whose Account has spec.limits get a quota. Existing quotas are not changed.',
  ),
  ...OIDC_ENVIRONMENT,
  SLUICE_ALLOWED_NETWORKS: list
    .refine(networks => networks.every(isNetwork), {
      message: 'must be CIDR networks separated by commas, such as 10.0.0.0/8',
    })
    .prefault('')
    .describe(
      'A comma-separated list of CIDR networks that endpoints can use, in addition to public addresses. By default, endpoints can only use public addresses.',
    ),
  SLUICE_REFUSED_NETWORKS: list
    .refine(networks => networks.every(isNetwork), {
      message: 'must be CIDR networks separated by commas, such as 198.18.0.7/32 or 2001:db8:64::/96',
    })
    .prefault('')
    .describe(
      'A comma-separated list of CIDR networks that endpoints can never use, even if they are public or in SLUICE_ALLOWED_NETWORKS. Include the public addresses of your API servers and load balancers, and your NAT64 prefix. Set it for both the controller and the dispatcher. By default, this list is empty.',
    ),
  SLUICE_ALLOWED_PORTS: list
    .refine(ports => ports.every(isPort), {
      message: 'must be TCP ports between 1 and 65535 separated by commas, such as 443,8443',
    })
    .transform(ports => ports.map(Number))
    .prefault('')
    .describe(
      'A comma-separated list of TCP ports that endpoints can use, such as 443,8443. Set it for both the controller and the dispatcher. By default, endpoints can use any port.',
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
      "This installation's DNS name, such as events.example.com. If set, an endpoint only receives events after it has agreed to receive them from this name, by responding to an OPTIONS request with the WebHook-Allowed-Origin header. The dispatcher asks before the first event and then every hour. Until the endpoint agrees, attempts fail with `consent_missing` and are retried as usual. By default, consent is not required.",
    ),
  SLUICE_TRUSTED_PROXIES: list
    .transform(networks => (networks.length === 0 ? undefined : networks.join() === 'none' ? [] : networks))
    .refine(networks => networks === undefined || areProxies(networks), {
      message:
        'must be the CIDR networks of your proxies separated by commas, such as 10.0.0.0/8 (but not /0, which is all addresses), or none if clients connect directly',
    })
    .optional()
    .describe(
      'A comma-separated list of CIDR networks of the proxies and load balancers in front of ingress and the facade, or none if clients connect directly. Required for address limits. For connections from one of these networks, the client address is the rightmost address in X-Forwarded-For that is not in the list. By default, client addresses are not used.',
    ),
  SLUICE_INGRESS_ADDRESS_LIMIT: eventRate(50_000).describe(
    'The number of events per second that each ingress replica accepts from an address (or from a /64 network when using IPv6). An event counts once for every 16 KiB of its body (rounded up), and looking up an invalid key counts as 100 events. Ingress rejects any further events with 429. Requires SLUICE_TRUSTED_PROXIES. To disable this limit, set it to 0. The default is higher than the maximum throughput of a replica.',
  ),
  SLUICE_INGRESS_KEY_LIMIT: eventRate(0).describe(
    'The number of events per second that each ingress replica accepts with the same ingress key. An event counts once for every 16 KiB of its body (rounded up). Ingress rejects any further events with 429. Sandbox requests count separately. By default, there is no limit (0).',
  ),
  SLUICE_INGRESS_WORKSPACE_LIMIT: eventRate(0).describe(
    'The number of events per second that each ingress replica accepts for a workspace, including all of its keys and streams. An event counts once for every 16 KiB of its body (rounded up). Ingress rejects any further events with 429. Sandbox requests count separately. By default, there is no limit (0).',
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
      'The mail server for invitations, e.g. smtp://[user:password@]host[:port]. For smtp://, the default port is 587, and STARTTLS is required unless the server is running on the same machine. For connections that are encrypted from the start, use smtps:// (the default port is 465). By default, invitation tokens are written to the Secret <integration>-invitation instead.',
    ),
  SLUICE_SMTP_ALLOW_PLAIN_TEXT: z
    .enum(['true', 'false'])
    .default('false')
    .describe(
      'Set to true to allow unencrypted connections to smtp:// servers without STARTTLS support. Attackers on the network can then disable STARTTLS to read the invitations and the password in SLUICE_SMTP_URL.',
    ),
  SLUICE_SMTP_FROM: z
    .string()
    .max(320)
    .refine(text => parseMailbox(text) !== undefined, {
      message: 'must be an address or Name <address>, such as Sluice <sluice@example.com>',
    })
    .optional()
    .describe(
      'The sender address for invitations, specified as either address or Name <address>. Defaults to sluice@ followed by the SLUICE_SMTP_URL host.',
    ),
  SLUICE_INVITATION_URL: z
    .string()
    .max(500)
    .refine(isPage, {
      message: 'must be an http or https URL without a user or a fragment, such as https://app.example.com/invitations',
    })
    .optional()
    .describe(
      'The page that invitations link to. The token is appended as #token=<token>, a part of the URL that browsers never send to a server. By default, the email explains how to accept the invitation through the REST API.',
    ),
  ...FACADE_ENVIRONMENT,
  SLUICE_LOG_LEVEL: z
    .enum(LOG_LEVELS)
    .default('info')
    .describe(`The minimum log level. Can be one of ${LOG_LEVELS.join(', ')}.`),
  SLUICE_QUEUE_MAX_BYTES: z.coerce
    .number()
    .int()
    .min(1_048_576)
    .default(1_073_741_824)
    .describe(
      'The storage quota of each stream in bytes. When a stream has reached its quota, ingress responds with 429. The size of an event is the size of its body, metadata (id, type, content type, and forwarded headers), and group key, plus 250 bytes. Each receiving integration adds 45 bytes, and 450 more until its delivery has ended. An id provided by the producer adds 115 bytes for one day. A dead, skipped, or expired delivery adds about 170 bytes until it is removed from the inbox. Defaults to 1 GiB.',
    ),
  SLUICE_NAMESPACE: z
    .string()
    .regex(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
      'must be a valid namespace name with lowercase letters, digits and hyphens, such as sluice-system',
    )
    .optional()
    .describe(
      'The namespace in which the controller creates its Lease. Defaults to the namespace of the pod or of the current kubeconfig context. If neither is available, sluice-system is used.',
    ),
  SLUICE_INSTANCE: z
    .string()
    .refine(text => text === DEFAULT_INSTANCE || INSTANCE.test(text), {
      message: MUST_BE_INSTANCE,
    })
    .default(DEFAULT_INSTANCE)
    .describe(
      "This installation's name, if the cluster has several. The installation manages the Accounts and Workspaces with this name in spec.instance, and everything in the namespaces of these Workspaces. By default, the installation has no name and manages objects without spec.instance. Use the same value for all roles. You cannot change the name later because the data in Redis belongs to this installation.",
    ),
  SLUICE_SHUTDOWN_DELAY_SECONDS: z.coerce
    .number()
    .min(0)
    .max(600)
    .default(5)
    .describe(
      'The number of seconds for which ingress and the facade keep serving requests after SIGTERM, because a Service may still send requests to a pod that is no longer ready. Set terminationGracePeriodSeconds of the pod to 25 more than this value. There is no delay for SIGINT.',
    ),
} as const;

const Environment = z.object(ENVIRONMENT);

/** Environment after applying the defaults. */
export type EnvironmentValues = z.output<typeof Environment>;

/** Returns whether a variable is a number. */
function isNumber(name: string): boolean {
  let schema: unknown = ENVIRONMENT[name as keyof typeof ENVIRONMENT];
  while (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional) schema = schema.unwrap();
  return schema instanceof z.ZodNumber;
}

/** JavaScript reads an empty text as 0, which turns off a limit. Helm writes large numbers with an exponent. */
const NUMBER = /^\s*-?\d+(\.\d+)?(e\+?\d+)?\s*$/;

/** Checks the variables. If a variable is invalid, returns undefined and adds the required change to `problems`. */
export function parseEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
  problems: string[],
): EnvironmentValues | undefined {
  const read = Object.entries(variables).map(([name, text]) => {
    return [name, text !== undefined && isNumber(name) && !NUMBER.test(text) ? Number.NaN : text];
  });
  const parsed = Environment.safeParse(Object.fromEntries(read), { error: messageOf });
  for (const issue of parsed.error?.issues ?? []) problems.push(`${issue.path.join('.')}: ${issue.message}`);
  return parsed.data;
}

/** Returns the required change for a variable without a custom message. */
const messageOf: z.core.$ZodErrorMap = issue => {
  if (issue.code === 'invalid_type')
    return `must be a ${issue.format === 'safeint' ? 'whole ' : ''}number without a unit`;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_small' && issue.origin === 'string') return 'must not be empty';
  if (issue.code === 'too_big' && issue.origin === 'string') return `must have at most ${issue.maximum} characters`;
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}`;
  return undefined;
};
