import { z } from 'zod';
import { duration } from './durations.ts';
import { endpointUrl } from './endpoint-url.ts';
import { endpointHeaderName } from './header-names.ts';
import { atomicList } from './lists.ts';
import { withRule } from './rules.ts';
import { timestamp } from './strings.ts';

/** Default values for an endpoint, with delays as duration strings. */
export const ENDPOINT_DEFAULTS = {
  timeoutSeconds: 15,
  secretVersion: 1,
  retrySchedule: ['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'],
} as const;

const SecretKeyRef = z
  .object({
    name: z
      .string()
      .min(1)
      .max(253)
      .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
      .describe(
        'Name of a Secret in the same namespace as the Subscription. Secret types that hold credentials for the cluster or for Sluice itself cannot be used.',
      ),
    key: z
      .string()
      .min(1)
      .max(253)
      .regex(/^[-._a-zA-Z0-9]+$/)
      .describe(
        "Key of the entry in the Secret's data. Its value must consist of visible ASCII characters and spaces, up to a maximum of 4,096 characters. A single trailing line break is removed.",
      ),
  })
  .describe('Reference to a key within a Secret.');
type SecretKeyRef = z.infer<typeof SecretKeyRef>;

export const EndpointHeader = withRule(
  z.object({
    name: endpointHeaderName().describe(
      'Name of the header. Must not be a connection header, content-type, date, traceparent, user-agent, webhook-*, ce-*, or x-sluice-*.',
    ),
    value: z
      .string()
      .max(1024)
      .regex(/^[\t -~]*$/)
      .describe(
        'Plain text value, limited to 1,024 visible ASCII characters and spaces. Visible to anyone who can read the Subscription.',
      )
      .optional(),
    valueSealed: z
      .string()
      .max(2048)
      .regex(/^s2\.[A-Za-z0-9_-]{10}\.[A-Za-z0-9_-]+$/)
      .describe(
        'Encrypted value, written by the REST API. Can only be used with the Subscription and header it was encrypted for, and with URLs of the same origin (scheme, host, and port). If it cannot be decrypted, events are kept and Live is False with reason HeaderNotReadable.',
      )
      .optional(),
    valueFrom: z
      .object({ secretKeyRef: SecretKeyRef })
      .describe(
        'Used to load the header value from a Secret. Changes to the value are picked up by attempts within a few seconds. While the value is missing, events are kept and Live is False with reason WaitingForSecret.',
      )
      .optional(),
  }),
  {
    rule: '[has(self.value), has(self.valueSealed), has(self.valueFrom)].exists_one(given, given)',
    message: 'must have exactly one of value, valueSealed, and valueFrom',
    holds: ({ value, valueSealed, valueFrom }) =>
      [value, valueSealed, valueFrom].filter(given => given !== undefined).length === 1,
  },
).describe('Header to include with every delivery.');
export type EndpointHeader = z.infer<typeof EndpointHeader>;

/** Returns the headers whose value should be read from a Secret, in the same order. */
export function headersWithSecret(
  headers: readonly EndpointHeader[] | undefined,
): { readonly name: string; readonly secret: SecretKeyRef }[] {
  return (headers ?? []).flatMap(({ name, valueFrom }) =>
    valueFrom === undefined ? [] : [{ name, secret: valueFrom.secretKeyRef }],
  );
}

export const Endpoint = z
  .object({
    url: endpointUrl().describe(
      'Absolute URL to send deliveries to, specified as https with up to 2,048 ASCII characters and no user info. Plain http is only permitted for addresses within networks allowed by the operator; otherwise, Live will be False with reason EndpointRefused.',
    ),
    timeoutSeconds: z
      .int()
      .min(1)
      .max(30)
      .meta({ format: 'int32' })
      .describe('Timeout for each attempt, in seconds. Must be between 1 and 30. Defaults to 15.')
      .optional(),
    maxPerSecond: z
      .int()
      .min(1)
      .max(10_000)
      .meta({ format: 'int32' })
      .describe('Maximum number of attempts per second, between 1 and 10,000. Unlimited if not specified.')
      .optional(),
    retrySchedule: atomicList(duration().describe('Delay after a failed attempt, e.g. 5s, 30m, or 2h.'), {
      max: 16,
    })
      .describe(
        `Delays between successive attempts, each with up to 20 % of added jitter. Limited to 16 entries. An event becomes a dead letter once its last attempt has failed, so an empty list means that delivery is only attempted once. Defaults to ${ENDPOINT_DEFAULTS.retrySchedule.join(', ')}.`,
      )
      .optional(),
    headers: atomicList(EndpointHeader, { max: 16 })
      .describe(
        'Custom headers included with every delivery, such as the authorization expected by the endpoint. Maximum of 16 entries.',
      )
      .optional(),
    secretVersion: z
      .int()
      .min(1)
      .max(1_000_000)
      .meta({ format: 'int32' })
      .describe(
        'Signing secret version. Increment by one to rotate the secret, after which deliveries are signed with both versions for 24 hours. Must never be decreased. Defaults to 1.',
      )
      .optional(),
    enabledAt: timestamp()
      .describe(
        'Time (RFC 3339) at which the endpoint was manually enabled. Endpoints are disabled by a 410 response or by five days of failures; set this field to the current time to enable the endpoint again.',
      )
      .optional(),
  })
  .describe(
    'The receiving endpoint. Optional. When omitted, nothing is sent and the partner can instead pull and acknowledge events using the REST API.',
  );
export type Endpoint = z.infer<typeof Endpoint>;
