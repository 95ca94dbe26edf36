import { z } from 'zod';
import { duration } from './durations.ts';
import { endpointUrl } from './endpoint-url.ts';
import { endpointHeaderName } from './header-names.ts';
import { atomicList } from './lists.ts';
import { withRule } from './rules.ts';
import { timestamp } from './strings.ts';

/** What holds for an endpoint that says nothing else. Delays are duration strings. */
export const ENDPOINT_DEFAULTS = {
  timeoutSeconds: 15,
  secretVersion: 1,
  retrySchedule: ['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'],
} as const;

export const SecretKeyRef = z
  .object({
    name: z
      .string()
      .min(1)
      .max(253)
      .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
      .describe(
        "Name of a Secret in the Subscription's namespace, of any type but those that hold credentials of the cluster or of Sluice.",
      ),
    key: z
      .string()
      .min(1)
      .max(253)
      .regex(/^[-._a-zA-Z0-9]+$/)
      .describe(
        'Key within the Secret. Its value has to be visible ASCII and spaces, at most 4,096 characters; one line break at the end is left out.',
      ),
  })
  .describe('A field of a Secret.');
export type SecretKeyRef = z.infer<typeof SecretKeyRef>;

export const EndpointHeader = withRule(
  z.object({
    name: endpointHeaderName().describe(
      'Name of the header. Not those of the connection, content-type, date, traceparent, user-agent, webhook-*, ce-* or x-sluice-*.',
    ),
    value: z
      .string()
      .max(1024)
      .regex(/^[\t -~]*$/)
      .describe('Value in the clear: visible ASCII and spaces, at most 1,024 characters.')
      .optional(),
    valueFrom: z
      .object({ secretKeyRef: SecretKeyRef })
      .describe(
        'Where the value is read from, so that it is not in the clear. A changed value is used for the attempts that begin some seconds later; while there is none, events are kept (Live=False, WaitingForSecret).',
      )
      .optional(),
  }),
  {
    rule: 'has(self.value) != has(self.valueFrom)',
    message: 'needs exactly one of value, valueFrom',
    holds: header => (header.value === undefined) !== (header.valueFrom === undefined),
  },
).describe('A header that every delivery carries, with its value or where to find it.');
export type EndpointHeader = z.infer<typeof EndpointHeader>;

/** The headers that take their value from a Secret, in their order. */
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
      'Absolute URL that deliveries are posted to; at most 2,048 characters of ASCII, without user info. https, or http towards networks that the operator allows (else Live=False, EndpointRefused).',
    ),
    timeoutSeconds: z
      .int()
      .min(1)
      .max(30)
      .meta({ format: 'int32' })
      .describe('Seconds until an attempt without a complete answer has failed, 1 to 30. Absent: 15.')
      .optional(),
    maxPerSecond: z
      .int()
      .min(1)
      .max(10_000)
      .meta({ format: 'int32' })
      .describe('Most attempts started in a second, 1 to 10,000. Absent: no limit.')
      .optional(),
    retrySchedule: atomicList(duration().describe('Delay after a failed attempt, as 5s, 30m or 2h.'), { max: 16 })
      .describe(
        `Delays between attempts, at most 16; up to 20 % of jitter is added, then the event is a dead letter. Empty: one attempt. Absent: ${ENDPOINT_DEFAULTS.retrySchedule.join(', ')}.`,
      )
      .optional(),
    headers: atomicList(EndpointHeader, { max: 16 })
      .describe(
        'Headers that every delivery carries, at most 16, for example the authorization that the endpoint wants.',
      )
      .optional(),
    secretVersion: z
      .int()
      .min(1)
      .max(1_000_000)
      .meta({ format: 'int32' })
      .describe(
        'Version of the signing secret. To rotate, add one: both versions sign for 24 hours. Only grows. Absent: 1.',
      )
      .optional(),
    enabledAt: timestamp()
      .describe(
        'Set to the present time (RFC 3339) to enable an endpoint again that was disabled before it (410, or five days of failures).',
      )
      .optional(),
  })
  .describe('Where events are delivered to. Absent: nothing is sent, the partner pulls and acknowledges over REST.');
export type Endpoint = z.infer<typeof Endpoint>;
