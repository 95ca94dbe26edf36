import { z } from 'zod';
import { timestamp } from './strings.ts';

/**
 * The possible outcomes of an attempt with their descriptions, as shown in a Subscription's status. The names must
 * not be changed.
 */
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
  ConsentMissing: 'the endpoint has not agreed to receive events',
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
      .describe(`The result of the most recent attempt, if there was one. It can be one of ${meanings()}.`)
      .optional(),
    lastAttemptSince: timestamp().describe('The time (RFC 3339) of the first attempt that had this result.').optional(),
    deadLetters: z
      .boolean()
      .describe('Indicates whether the inbox contains dead letters, which can be recovered or replayed.')
      .optional(),
    backlog: z
      .string()
      .max(16)
      .regex(/^(0|10*\+)$/)
      .describe(
        'The number of events waiting in the inbox, rounded down to a power of ten: 0, 1+, 10+, 100+, and so on. Events with an attempt in progress are not counted. The field is updated when a change has lasted for about 10 seconds.',
      )
      .optional(),
  })
  .describe(
    'The state of deliveries. Updates are limited to 5 Subscriptions per second, so they may be delayed if many endpoints change at the same time.',
  );
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;
