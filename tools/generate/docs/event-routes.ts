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
    description: 'Id of the run, as you chose it or as the answer to its first event has it.',
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
      'The body is the event: any content type except a batch of CloudEvents, at most 256 KiB, stored and delivered byte for byte. 202 means that the event is on disk. Until its retention ends, an event counts against the quota of the stream: body, metadata (id, type, content type, forwarded headers, `ce-` attributes), group key and 400 bytes of overhead. A request above the quota gets 429. When any Redis uses 85 % of its memory, this route and the sandbox answer 503 until each uses less than 80 %. The sandbox parameters sb_fail_code, sb_fail_count and runId are refused in every spelling, with or without a value, and nothing is stored.',
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
      'Accepts the same requests as the production route, and puts the event into a sandbox run. Routing, ordering, signing, retries and records are those of production. But no endpoint is called, waits between attempts are 36,000 times shorter, and nothing is charged or counted. Duplicates are found within a run; runs are isolated from each other and from production.',
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
      'Shows where each event of the run went or why not, and for each delivery the expected attempts, the actual attempts and their headers. A run is kept for 24 hours after its first event. Reading a run, or sending it another event, decides waiting events again. A page has at most 1,000 verdicts, so it may have fewer events than `limit`. It shows at most 100 integrations of an event.',
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
