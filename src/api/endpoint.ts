import { z } from 'zod';
import { duration } from './durations.ts';
import { endpointUrl } from './endpoint-url.ts';
import { endpointHeaderName } from './header-names.ts';
import { atomicList } from './lists.ts';
import { withPattern, withRule } from './rules.ts';
import { timestamp } from './strings.ts';

/** Default values for an endpoint, with delays as duration strings. */
export const ENDPOINT_DEFAULTS = {
  timeoutSeconds: 15,
  secretVersion: 1,
  retrySchedule: ['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'],
} as const;

const SecretKeyRef = z
  .object({
    name: withPattern(
      z.string().min(1).max(253),
      /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/,
      'must be the name of a Secret, which consists of lowercase letters, digits, hyphens and dots, such as api-token',
    ).describe(
      "The name of a Secret in the same namespace as the Subscription. You can't use Secret types that contain credentials for the cluster or for Sluice itself.",
    ),
    key: withPattern(
      z.string().min(1).max(253),
      /^[-._a-zA-Z0-9]+$/,
      'must be a key in the data of the Secret, which consists of letters, digits, ".", "_" and "-", such as token',
    ).describe(
      "The key of the entry in the Secret's data. Its value must consist of visible ASCII characters, spaces, and tabs, up to a maximum of 4,096 characters. A single trailing line break is removed.",
    ),
  })
  .describe('The reference to a key within a Secret.');
type SecretKeyRef = z.infer<typeof SecretKeyRef>;

export const EndpointHeader = withRule(
  z.object({
    name: endpointHeaderName().describe(
      'The name of the header. Must not be a connection header, content-encoding, content-range, content-type, date, traceparent, user-agent, webhook-*, ce-*, or x-sluice-*.',
    ),
    value: withPattern(z.string().max(1024), /^[\t -~]*$/, 'must consist of visible ASCII characters, spaces, and tabs')
      .describe(
        'The value in plain text, limited to 1,024 visible ASCII characters, spaces, and tabs. This value is visible to anyone who can read the Subscription.',
      )
      .optional(),
    valueSealed: withPattern(
      z.string().max(2048),
      /^s2\.[A-Za-z0-9_-]{10}\.[A-Za-z0-9_-]+$/,
      'must be a value encrypted by the REST API, which starts with "s2."; to set another value, use value or valueFrom',
    )
      .describe(
        'The encrypted value, written by the REST API. It is only valid for its own Subscription and header, and for URLs of the same origin (scheme, host, and port). If you use it anywhere else, events are kept and Live is False with the HeaderNotReadable reason.',
      )
      .optional(),
    valueFrom: z
      .object({ secretKeyRef: SecretKeyRef })
      .describe(
        'Reads the value from a Secret. Attempts use a changed value within a few seconds. While the value is missing, events are kept and Live is False with the WaitingForSecret reason.',
      )
      .optional(),
  }),
  {
    rule: '[has(self.value), has(self.valueSealed), has(self.valueFrom)].exists_one(given, given)',
    message: 'must have exactly one of value, valueSealed, and valueFrom',
    holds: ({ value, valueSealed, valueFrom }) =>
      [value, valueSealed, valueFrom].filter(given => given !== undefined).length === 1,
  },
).describe('A header to include with every delivery.');
export type EndpointHeader = z.infer<typeof EndpointHeader>;

/** Returns the headers with a value from a Secret, in the same order. */
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
      'The URL that receives the deliveries: an absolute https URL with up to 2,048 ASCII characters, without a user name or password. http is only allowed with an IP address in a network that the operator allows. For any other URL, Live is False with the EndpointRefused reason.',
    ),
    timeoutSeconds: z
      .int()
      .min(1)
      .max(30)
      .meta({ format: 'int32' })
      .describe('The timeout for each attempt, in seconds. Must be between 1 and 30. Defaults to 15.')
      .optional(),
    maxPerSecond: z
      .int()
      .min(1)
      .max(10_000)
      .meta({ format: 'int32' })
      .describe('The maximum number of attempts per second, between 1 and 10,000. If not specified, there is no limit.')
      .optional(),
    retrySchedule: atomicList(duration().describe('The delay after a failed attempt, e.g. 5s, 30m, or 2h.'), {
      max: 16,
    })
      .describe(
        `The delays between attempts, at most 16. Up to 20 % is added to each delay. If the last attempt fails, the event becomes a dead letter. With an empty list, there is a single attempt. Defaults to ${ENDPOINT_DEFAULTS.retrySchedule.join(', ')}.`,
      )
      .optional(),
    headers: atomicList(EndpointHeader, { max: 16 })
      .describe(
        'Custom headers to include with every delivery, such as the authorization required by the endpoint. Maximum of 16 entries.',
      )
      .optional(),
    secretVersion: z
      .int()
      .min(1)
      .max(1_000_000)
      .meta({ format: 'int32' })
      .describe(
        "The signing secret's version. To rotate the secret, increment this by one. For 24 hours, deliveries are signed with both versions. Must never be decreased. Defaults to 1.",
      )
      .optional(),
    enabledAt: timestamp()
      .describe(
        'The time (RFC 3339) at which you last enabled the endpoint. A 410 response or five days of failures disable an endpoint. To re-enable it, set this field to the current time.',
      )
      .optional(),
  })
  .describe(
    'The receiving endpoint. Optional. If omitted, Sluice sends no requests. The partner then pulls and acknowledges events using the REST API.',
  );
export type Endpoint = z.infer<typeof Endpoint>;
