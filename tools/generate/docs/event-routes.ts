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
    .meta({ description: 'The name of the stream.', example: 'orders' }),
});
const OfRun = OfTenant.extend({
  runId: RunId.meta({
    description: 'The id of the run that you chose, or the id in the response to its first event.',
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
      'The request body is the event. It can have any content type except a batch of CloudEvents, and it can have up to 256 KiB. Sluice stores and delivers the body without changes. The status 202 means that the event is stored on disk. Each event counts towards the quota of the stream until its retention period ends. The size of an event includes its body, its metadata (id, type, content type, forwarded headers and `ce-` attributes), its group key and 400 bytes of overhead. If a request exceeds the quota, the response has status 429. If any Redis uses 85 % of its memory, this route and the sandbox respond with 503 until the usage is below 80 %. You cannot use the sandbox parameters sb_fail_code, sb_fail_count and runId with this route. If a request contains one of these parameters in any spelling, the event is rejected.',
    parameters: OfQueue,
    answer: { status: 202, description: 'The event is stored.', schema: AcceptedEvent },
    problems: [...OF_EVENTS, 'sandbox_parameter', 'queue_full'],
  },
  {
    method: 'POST',
    path: '/events/sandbox/{tenant}/{queue}',
    operation: 'publishSandboxEvent',
    tag: 'Sandbox',
    summary: 'Test an event in the sandbox',
    description:
      'Adds an event to a sandbox run. This route accepts the same requests as the production route, and it uses the same routing, ordering, signing, retries and records. However, no endpoint is called and no tokens are charged or counted. The waits between attempts are 36,000 times shorter. Duplicates are only detected within a run. Runs are isolated from each other and from production.',
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
    summary: 'Read the report of a run',
    description:
      'Returns the routing result of each event in the run. For each delivery, the report contains the expected attempts, the actual attempts and their headers. A run is kept for 24 hours after its first event. If you read a run or add an event to it, the gate evaluates waiting events again. A page can have up to 1,000 verdicts, so it can contain fewer events than `limit`. For each event, the page shows up to 100 integrations.',
    parameters: OfRun,
    query: RunReportQuery,
    answer: { status: 200, description: 'The run and a page of its events.', schema: RunReport },
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
