import { z } from 'zod';
import { timestamp } from './strings.ts';

/** Outcomes of an attempt, as shown in a Subscription's status, with descriptions. Names are stable. */
export const ATTEMPT_OUTCOMES = {
  Succeeded: 'a status from 200 to 299',
  HttpError: 'a status of 300 or above',
  InvalidResponse: 'the response is not valid HTTP/1.1, or its headers are too large',
  Timeout: 'the endpoint did not send a status line within its timeout',
  ConnectionFailed: 'the connection failed or was closed before the response',
  DnsFailed: 'the host name has no address',
  TlsFailed: 'the TLS handshake failed, or the certificate is not valid',
  EndpointRefused: 'the address or the URL is not allowed',
  InvalidRequest: 'a header is not valid in HTTP',
} as const;

export type AttemptOutcome = keyof typeof ATTEMPT_OUTCOMES;

const OUTCOMES = Object.keys(ATTEMPT_OUTCOMES) as [AttemptOutcome, ...AttemptOutcome[]];

function meanings(): string {
  return Object.entries(ATTEMPT_OUTCOMES)
    .map(([outcome, meaning]) => `${outcome} (${meaning})`)
    .join(', ');
}

export const DeliveryStatus = z
  .object({
    lastAttempt: z
      .enum(OUTCOMES)
      .describe(
        `The result of the last attempt. This field is not set before the first attempt. The possible values are ${meanings()}.`,
      )
      .optional(),
    lastAttemptSince: timestamp().describe('The time (RFC 3339) of the first attempt with this result.').optional(),
    deadLetters: z
      .boolean()
      .describe('Whether the inbox contains dead letters that you can recover or replay.')
      .optional(),
    backlog: z
      .string()
      .max(16)
      .regex(/^(0|10*\+)$/)
      .describe(
        'The number of events that wait in the inbox without an attempt in progress. The value is a power of ten: 0, 1+, 10+ or 100+. It is updated after a change has lasted for about 10 seconds.',
      )
      .optional(),
  })
  .describe(
    'The state of deliveries. The controller updates at most 5 Subscriptions per second. If many endpoints change at the same time, updates can be delayed.',
  );
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;
