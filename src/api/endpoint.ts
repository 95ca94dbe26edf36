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
        'The name of a Secret in the namespace of the Subscription. You cannot use Secret types that contain credentials of the cluster or of Sluice.',
      ),
    key: z
      .string()
      .min(1)
      .max(253)
      .regex(/^[-._a-zA-Z0-9]+$/)
      .describe(
        'The key in the Secret. The value must contain visible ASCII characters and spaces, with at most 4,096 characters. One line break at the end is removed.',
      ),
  })
  .describe('A reference to a key of a Secret.');
type SecretKeyRef = z.infer<typeof SecretKeyRef>;

export const EndpointHeader = withRule(
  z.object({
    name: endpointHeaderName().describe(
      'The name of the header. You cannot use connection headers, content-type, date, traceparent, user-agent, webhook-*, ce-* or x-sluice-*.',
    ),
    value: z
      .string()
      .max(1024)
      .regex(/^[\t -~]*$/)
      .describe(
        'The value in plain text. It can contain visible ASCII characters and spaces, with at most 1,024 characters.',
      )
      .optional(),
    valueFrom: z
      .object({ secretKeyRef: SecretKeyRef })
      .describe(
        'A reference to the value of the header. If you change the value, attempts use the new value after a few seconds. If the value does not exist, events are kept (Live=False, WaitingForSecret).',
      )
      .optional(),
  }),
  {
    rule: 'has(self.value) != has(self.valueFrom)',
    message: 'must have exactly one of value and valueFrom',
    holds: header => (header.value === undefined) !== (header.valueFrom === undefined),
  },
).describe('A header that is added to every delivery.');
export type EndpointHeader = z.infer<typeof EndpointHeader>;

/** Returns the headers that take their value from a Secret, in the same order. */
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
      'The absolute URL that receives deliveries. It must use https and can have at most 2,048 ASCII characters, without user info. You can only use http with addresses in networks that the operator allows. Otherwise, Live is False with the reason EndpointRefused.',
    ),
    timeoutSeconds: z
      .int()
      .min(1)
      .max(30)
      .meta({ format: 'int32' })
      .describe('The timeout of an attempt in seconds, from 1 to 30. Defaults to 15.')
      .optional(),
    maxPerSecond: z
      .int()
      .min(1)
      .max(10_000)
      .meta({ format: 'int32' })
      .describe('The maximum number of attempts per second, from 1 to 10,000. By default, there is no limit.')
      .optional(),
    retrySchedule: atomicList(duration().describe('The delay after a failed attempt, such as 5s, 30m or 2h.'), {
      max: 16,
    })
      .describe(
        `The delays between attempts, with at most 16 entries. Up to 20 % of jitter is added to each delay. If the last attempt fails, the event becomes a dead letter. If the list is empty, there is only one attempt. Defaults to ${ENDPOINT_DEFAULTS.retrySchedule.join(', ')}.`,
      )
      .optional(),
    headers: atomicList(EndpointHeader, { max: 16 })
      .describe(
        'The headers that are added to every delivery, with at most 16 entries. For example, you can set the authorization that the endpoint requires.',
      )
      .optional(),
    secretVersion: z
      .int()
      .min(1)
      .max(1_000_000)
      .meta({ format: 'int32' })
      .describe(
        'The version of the signing secret. To rotate the secret, increase the version by one. Both versions are used to sign deliveries for 24 hours. You cannot decrease the version. Defaults to 1.',
      )
      .optional(),
    enabledAt: timestamp()
      .describe(
        'The time (RFC 3339) when you enabled the endpoint. To enable an endpoint that was disabled, set this field to the current time. An endpoint is disabled after status 410 or after five days of failures.',
      )
      .optional(),
  })
  .describe(
    'The endpoint that receives the events. If this field is not set, no events are sent, and the partner can use the REST API to pull and acknowledge them.',
  );
export type Endpoint = z.infer<typeof Endpoint>;
