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
    description:
      "The id of the run. This is either one you've chosen yourself or the one returned in the response to its first event.",
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
  'rate_limited',
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
      "Publishes the request body as an event of up to 256 KiB. Any content type is allowed other than batches of CloudEvents, and the body will be stored and delivered as is. If the body is compressed (with a Content-Encoding header), it will be rejected with status 415. If the status is 202, the event has been stored on disk. Until the end of their retention period, events count towards the stream's quota, and towards the stored bytes of the account if it has such a limit, which are both enforced with status 429 (`queue_full` and `storage_limit`). The size of an event is calculated from its body, metadata (id, type, content type, forwarded headers, and `ce-` attributes), and group key, plus 250 bytes, plus 100 bytes if you provide the id, plus 110 bytes for each receiving integration. When a Redis master uses 70 % of its memory, events of accounts that store more than their [share](limits.md#memory) are rejected with 429 `storage_pressure`. At 82 %, all events for this master are rejected with 503 until its usage has dropped below 77 %, and so are all events for the sandbox. Sandbox parameters (sb_fail_code, sb_fail_count, and runId) are not allowed here in any spelling, and result in the event being rejected.",
    parameters: OfQueue,
    answer: { status: 202, description: 'The event has been stored.', schema: AcceptedEvent },
    problems: [...OF_EVENTS, 'sandbox_parameter', 'queue_full', 'storage_limit', 'storage_pressure'],
  },
  {
    method: 'POST',
    path: '/events/sandbox/{tenant}/{queue}',
    operation: 'publishSandboxEvent',
    tag: 'Sandbox',
    summary: 'Test an event in the sandbox',
    description:
      'Adds an event to a sandbox run. The format of the requests is the same as in production. This also applies to routing, ordering, signing, retries, and records. However, no endpoints are called and no tokens are charged or counted. Waiting times between attempts are also 36,000 times shorter, and duplicates are only detected within the same run. Each run is isolated from production and from all other runs.',
    parameters: OfQueue,
    query: SandboxQuery,
    answer: { status: 202, description: 'The event has been stored as part of the run.', schema: SandboxAcceptedEvent },
    problems: [...OF_EVENTS, 'invalid_request', 'sandbox_run_full', 'sandbox_spent'],
  },
  {
    method: 'GET',
    path: '/events/sandbox/{tenant}/runs/{runId}',
    operation: 'readSandboxRun',
    tag: 'Sandbox',
    summary: 'Retrieve the report of a run',
    description:
      'Returns the routing result for each event in the run, including expected and actual attempts for each delivery together with their headers. A run will be kept for 24 hours after its first event. Waiting events are evaluated again by the gate whenever the run is retrieved or a new event is added to it. Each page is limited to 1,000 verdicts and may therefore include fewer events than specified by `limit`. For each event, up to 100 integrations are included.',
    parameters: OfRun,
    query: RunReportQuery,
    answer: { status: 200, description: 'The run, along with a page of its events.', schema: RunReport },
    problems: [
      'malformed_request',
      'unauthenticated',
      'not_found',
      'unknown_run',
      'invalid_request',
      'rate_limited',
      'internal',
      'unavailable',
    ],
  },
];
