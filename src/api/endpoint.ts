import { z } from 'zod';
import { duration } from './durations.ts';
import { endpointUrl } from './endpoint-url.ts';
import { endpointHeaderName } from './header-names.ts';
import { atomicList } from './lists.ts';
import { withRule } from './rules.ts';
import { timestamp } from './strings.ts';

/** Defaults of an endpoint. Delays are duration strings. */
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
        "Name of a Secret in the Subscription's namespace. Types that hold credentials of the cluster or of Sluice are refused.",
      ),
    key: z
      .string()
      .min(1)
      .max(253)
      .regex(/^[-._a-zA-Z0-9]+$/)
      .describe(
        'Key in the Secret. The value must be visible ASCII and spaces, at most 4,096 characters. One line break at the end is removed.',
      ),
  })
  .describe('A key of a Secret.');
type SecretKeyRef = z.infer<typeof SecretKeyRef>;

export const EndpointHeader = withRule(
  z.object({
    name: endpointHeaderName().describe(
      'Name of the header. Not a header of the connection, content-type, date, traceparent, user-agent, webhook-*, ce-* or x-sluice-*.',
    ),
    value: z
      .string()
      .max(1024)
      .regex(/^[\t -~]*$/)
      .describe('Value in plain text: visible ASCII and spaces, at most 1,024 characters.')
      .optional(),
    valueFrom: z
      .object({ secretKeyRef: SecretKeyRef })
      .describe(
        'Source of a secret value. Attempts use a changed value after some seconds. While the value is missing, events are kept (Live=False, WaitingForSecret).',
      )
      .optional(),
  }),
  {
    rule: 'has(self.value) != has(self.valueFrom)',
    message: 'must have exactly one of value and valueFrom',
    holds: header => (header.value === undefined) !== (header.valueFrom === undefined),
  },
).describe('A header of every delivery, with its value or the source of its value.');
export type EndpointHeader = z.infer<typeof EndpointHeader>;

/** Returns the headers that take their value from a Secret, in their order. */
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
      'Absolute URL to post deliveries to: https, at most 2,048 characters of ASCII, without user info. http works only for addresses in networks that the operator allows (else Live=False, EndpointRefused).',
    ),
    timeoutSeconds: z
      .int()
      .min(1)
      .max(30)
      .meta({ format: 'int32' })
      .describe('Timeout of an attempt in seconds, 1 to 30. Absent: 15.')
      .optional(),
    maxPerSecond: z
      .int()
      .min(1)
      .max(10_000)
      .meta({ format: 'int32' })
      .describe('Maximum number of attempts started in a second, 1 to 10,000. Absent: no limit.')
      .optional(),
    retrySchedule: atomicList(duration().describe('Delay after a failed attempt, for example 5s, 30m or 2h.'), {
      max: 16,
    })
      .describe(
        `Delays between attempts, at most 16, each with up to 20 % of jitter. After the last attempt the event is a dead letter. Empty: one attempt. Absent: ${ENDPOINT_DEFAULTS.retrySchedule.join(', ')}.`,
      )
      .optional(),
    headers: atomicList(EndpointHeader, { max: 16 })
      .describe('Headers of every delivery, at most 16, for example the authorization that the endpoint requires.')
      .optional(),
    secretVersion: z
      .int()
      .min(1)
      .max(1_000_000)
      .meta({ format: 'int32' })
      .describe(
        'Version of the signing secret. To rotate, add one: both versions sign for 24 hours. You cannot lower it. Absent: 1.',
      )
      .optional(),
    enabledAt: timestamp()
      .describe(
        'Set it to the current time (RFC 3339) to enable an endpoint that was disabled earlier (410, or five days of failures).',
      )
      .optional(),
  })
  .describe('Where to deliver events. Absent: nothing is sent; the partner pulls and acknowledges over REST.');
export type Endpoint = z.infer<typeof Endpoint>;
