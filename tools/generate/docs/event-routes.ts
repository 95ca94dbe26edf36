import { z } from 'zod';
import {
  AcceptedEvent,
  RunId,
  RunReport,
  RunReportQuery,
  SandboxAcceptedEvent,
  SandboxQuery,
} from '../../../src/api/sandbox.ts';
import type { ProblemCode } from '../../../src/core/problems/problems.ts';
import { publicIdField } from '../../../src/facade/contract/fields.ts';

/** A route of the ingress role, as the reference tells it. */
export interface EventRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly operation: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly answer: { readonly status: number; readonly description: string; readonly schema: z.ZodType };
  readonly problems: readonly ProblemCode[];
}

const OfTenant = z.object({ tenant: publicIdField('Workspace') });
const OfQueue = OfTenant.extend({
  queue: z
    .string()
    .regex(/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/)
    .meta({ description: 'Name of the stream.', example: 'orders' }),
});
const OfRun = OfTenant.extend({
  runId: RunId.meta({
    description: 'The run, as it was named, or as the answer to its first event names it.',
    example: 'nightly-1',
  }),
});

/** What any event may be refused with, wherever it is sent. */
const OF_EVENTS: readonly ProblemCode[] = [
  'malformed_request',
  'malformed_body',
  'unauthenticated',
  'not_found',
  'unknown_queue',
  'request_timeout',
  'stream_closing',
  'body_too_large',
  'uri_too_long',
  'unsupported_media_type',
  'expectation_failed',
  'malformed_cloudevent',
  'invalid_context',
  'unknown_event_type',
  'headers_too_large',
  'internal',
  'unavailable',
  'overloaded',
];

/** Every route of the ingress role. */
export const EVENT_ROUTES: readonly EventRoute[] = [
  {
    method: 'POST',
    path: '/events/{tenant}/{queue}',
    operation: 'publishEvent',
    tag: 'Production',
    summary: 'Publish an event',
    description:
      'The body is the event, any content type but a batch of CloudEvents, at most 256 KiB, stored and delivered byte for byte. The answer 202 means that it is on disk. Until its retention ends it takes of the quota of the stream what it keeps: its body, its metadata (id, type, content type, forwarded headers, `ce-` attributes), its group key, and 400 bytes; what does not fit is answered with 429. From 85 % of the memory of any Redis on, until each uses less than 80 % of its own, neither this route nor the sandbox takes events (503). The sandbox parameters sb_fail_code, sb_fail_count and runId are refused in every spelling, with or without a value, and nothing is stored then.',
    parameters: OfQueue,
    answer: { status: 202, description: 'The event is stored.', schema: AcceptedEvent },
    problems: [...OF_EVENTS, 'sandbox_parameter', 'queue_full'],
  },
  {
    method: 'POST',
    path: '/events/sandbox/{tenant}/{queue}',
    operation: 'publishSandboxEvent',
    tag: 'Sandbox',
    summary: 'Try an event out',
    description:
      'Takes what the production route takes, and puts it into a run of the sandbox: the real gate decides where it goes, and it is ordered, signed, retried and recorded as in production; but no endpoint is called, waits between attempts are 36,000 times shorter, and nothing is charged or counted. Within a run events are known by their ids; runs know nothing of each other or of production.',
    parameters: OfQueue,
    query: SandboxQuery,
    answer: { status: 202, description: 'The event is stored in the run.', schema: SandboxAcceptedEvent },
    problems: [...OF_EVENTS, 'invalid_request', 'sandbox_run_full', 'sandbox_spent'],
  },
  {
    method: 'GET',
    path: '/events/sandbox/{tenant}/runs/{runId}',
    operation: 'readSandboxRun',
    tag: 'Sandbox',
    summary: 'Read what became of a run',
    description:
      'Where each event of the run went, or why not; of each delivery the attempts that policy and simulation lead to, those that were made, and their headers. A run is kept for 24 hours from its first event on. What waits for a gate goes on when its run is read, or gets another event. A page has 1,000 verdicts at most, and so fewer events than asked for where integrations are many; of one event 100 integrations are told.',
    parameters: OfRun,
    query: RunReportQuery,
    answer: { status: 200, description: 'The run, and a page of its events.', schema: RunReport },
    problems: [
      'malformed_request',
      'unauthenticated',
      'not_found',
      'unknown_run',
      'invalid_request',
      'internal',
      'unavailable',
    ],
  },
];
