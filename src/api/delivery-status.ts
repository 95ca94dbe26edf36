import { z } from 'zod';
import { timestamp } from './strings.ts';

/** How an attempt ended, as the status of a Subscription names it: few words that stay the same, with their meaning. */
export const ATTEMPT_OUTCOMES = {
  Succeeded: 'a status from 200 to 299',
  HttpError: 'a status from 300 on',
  InvalidResponse: 'an answer that is not HTTP/1.1, or headers that are too large',
  Timeout: 'no status line before the timeout of the endpoint',
  ConnectionFailed: 'no connection, or one that ended before the answer',
  DnsFailed: 'no address for the name',
  TlsFailed: 'a certificate or a TLS handshake that failed',
  EndpointRefused: 'an address or a URL that the operator does not allow',
  InvalidRequest: 'a header that HTTP cannot carry',
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
      .describe(`How the last attempt ended. Absent before the first attempt. ${meanings()}.`)
      .optional(),
    lastAttemptSince: timestamp().describe('Since when attempts end this way (RFC 3339).').optional(),
    deadLetters: z
      .boolean()
      .describe('Whether the inbox holds dead letters that you can still recover or replay.')
      .optional(),
    backlog: z
      .string()
      .max(16)
      .regex(/^(0|10*\+)$/)
      .describe(
        'Events that wait in the inbox and have no attempt under way, as a power of ten: 0, 1+, 10+, 100+. It follows when a change has lasted about 10 seconds.',
      )
      .optional(),
  })
  .describe(
    'How deliveries go. The controller writes changes only, and at most 5 Subscriptions a second, so a change may show later when many endpoints change at once.',
  );
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;
