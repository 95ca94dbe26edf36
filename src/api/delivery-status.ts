import { z } from 'zod';
import { timestamp } from './strings.ts';

/** Outcomes of an attempt in the status of a Subscription, with their meanings. The names are stable. */
export const ATTEMPT_OUTCOMES = {
  Succeeded: 'a status from 200 to 299',
  HttpError: 'a status from 300 on',
  InvalidResponse: 'the response is not HTTP/1.1, or its headers are too large',
  Timeout: 'no status line before the timeout of the endpoint',
  ConnectionFailed: 'no connection, or it closed before the response',
  DnsFailed: 'the name has no address',
  TlsFailed: 'the TLS handshake failed, or the certificate is not valid',
  EndpointRefused: 'the operator does not allow the address or the URL',
  InvalidRequest: 'a header is not valid in HTTP',
} as const;

export type AttemptOutcome = keyof typeof ATTEMPT_OUTCOMES;

const OUTCOMES = Object.keys(ATTEMPT_OUTCOMES) as [AttemptOutcome, ...AttemptOutcome[]];

function meanings(): string {
  return Object.entries(ATTEMPT_OUTCOMES)
    .map(([outcome, meaning]) => `${outcome}: ${meaning}`)
    .join('. ');
}

export const DeliveryStatus = z
  .object({
    lastAttempt: z
      .enum(OUTCOMES)
      .describe(`Outcome of the last attempt. Absent before the first attempt. ${meanings()}.`)
      .optional(),
    lastAttemptSince: timestamp().describe('When attempts began to have this outcome (RFC 3339).').optional(),
    deadLetters: z
      .boolean()
      .describe('Whether the inbox holds dead letters that you can still recover or replay.')
      .optional(),
    backlog: z
      .string()
      .max(16)
      .regex(/^(0|10*\+)$/)
      .describe(
        'Events that wait in the inbox without an attempt in progress, as a power of ten: 0, 1+, 10+, 100+. A change appears after it has lasted about 10 seconds.',
      )
      .optional(),
  })
  .describe(
    'State of deliveries. The controller writes only changes, for at most 5 Subscriptions a second. If many endpoints change at once, a change can appear later.',
  );
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;
