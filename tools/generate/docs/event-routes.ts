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

/** A route of the ingress role, with its documentation. */
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
    description: 'Id of the run, either chosen by you or returned in the response to its first event.',
    example: 'nightly-1',
  }),
});

/** Problems that both event routes may answer. */
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
      "The request body is the event itself, up to a maximum of 256 KiB. Can be of any content type other than a batch of CloudEvents, and will be stored and delivered unchanged. A 202 indicates that the event has been stored on disk. Events count towards the stream's quota until the end of their retention period, with the size of an event consisting of its body, metadata (id, type, content type, forwarded headers, and `ce-` attributes), and group key, plus 400 bytes of overhead. Exceeding the quota results in a 429. Both this route and the sandbox respond with a 503 once any Redis has used 85 % of its memory, until usage drops below 80 %. The sandbox parameters sb_fail_code, sb_fail_count, and runId are not allowed here, and events sent with any of them (in any spelling) will be rejected.",
    parameters: OfQueue,
    answer: { status: 202, description: 'The event has been stored.', schema: AcceptedEvent },
    problems: [...OF_EVENTS, 'sandbox_parameter', 'queue_full'],
  },
  {
    method: 'POST',
    path: '/events/sandbox/{tenant}/{queue}',
    operation: 'publishSandboxEvent',
    tag: 'Sandbox',
    summary: 'Test an event in the sandbox',
    description:
      'Adds an event to a sandbox run. Accepts the same requests as the production route and shares its routing, ordering, signing, retries, and records, but without calling an endpoint or charging (or counting) any tokens. Waits between attempts are 36,000 times shorter. Runs are isolated from production as well as from each other, which means that duplicates are only detected within a run.',
    parameters: OfQueue,
    query: SandboxQuery,
    answer: { status: 202, description: 'The event has been stored in the run.', schema: SandboxAcceptedEvent },
    problems: [...OF_EVENTS, 'invalid_request', 'sandbox_run_full', 'sandbox_spent'],
  },
  {
    method: 'GET',
    path: '/events/sandbox/{tenant}/runs/{runId}',
    operation: 'readSandboxRun',
    tag: 'Sandbox',
    summary: 'Read the report of a run',
    description:
      'Returns the routing result for each event in the run, along with the expected attempts, actual attempts, and headers for each delivery. Runs are kept for 24 hours after their first event. Reading a run, or adding an event to it, causes waiting events to be evaluated by the gate again. Because a page is limited to 1,000 verdicts, it may contain fewer events than `limit`. Up to 100 integrations are shown per event.',
    parameters: OfRun,
    query: RunReportQuery,
    answer: { status: 200, description: 'The run, including a page of its events.', schema: RunReport },
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
