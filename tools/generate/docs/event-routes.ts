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

/** The sections of the reference, with their descriptions. */
export const EVENT_TAGS = {
  Production: 'Use this route to publish events that Sluice delivers to your partners.',
  Sandbox: 'Use these routes to simulate the routing and the retries of events. Sluice does not call any endpoints.',
} as const satisfies Readonly<Record<string, string>>;

/** A route of the ingress role, with its documentation. */
export interface EventRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly operation: string;
  readonly tag: keyof typeof EVENT_TAGS;
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
    .meta({ description: "The stream's name.", example: 'orders' }),
});
const OfRun = OfTenant.extend({
  runId: RunId.meta({
    description: "The run's id. You can choose it yourself or use the one returned in the response to the first event.",
    example: 'nightly-1',
  }),
});

/** The problems that both event routes may return. */
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

/** The routes of the ingress role. */
export const EVENT_ROUTES: readonly EventRoute[] = [
  {
    method: 'POST',
    path: '/events/{tenant}/{queue}',
    operation: 'publishEvent',
    tag: 'Production',
    summary: 'Publish an event',
    description:
      'Publishes the request body as an event of up to 256 KiB. The body is stored and delivered as it is. You can use any content type except for CloudEvents batches. Bodies with a Content-Encoding header are rejected with 415. Requests with a sandbox parameter (sb_fail_code, sb_fail_count, or runId, in upper or lower case) are rejected with 400.\n\nStatus 202 means that the event has been stored on disk. The event counts towards the quota of the stream (429 `queue_full`) and the stored bytes of the account (429 `storage_limit`) until its retention period ends. The size of an event is the size of its body (rounded up by up to a quarter if it has 2 KiB or more), metadata (id, type, content type, forwarded headers, and `ce-` attributes), and group key, plus 250 bytes. Each receiving integration adds 45 bytes, and 450 more until its delivery has ended. An id that you specify adds 115 bytes for one day. A [failed delivery](limits.md#storage) counts for longer.\n\nWhen a Redis master uses 70 % of its memory, ingress rejects the events of accounts that store more than their [share](limits.md#memory) with 429 `storage_pressure`. When the master uses 82 %, ingress rejects all events for streams on this master, and all sandbox events, with 503 until the usage drops below 77 %.',
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
      'Adds an event to a sandbox run. The request, routing, ordering, signing, retries, and records are the same as in production. No endpoints are called and no tokens are needed or charged. Delays between attempts are 36,000 times shorter (an hour takes 100 ms). Duplicates are only detected within a run. As in production, other query parameters are ignored. Those that are similar to a sandbox parameter, such as sb_failcount, are rejected with 422. Runs do not affect production or each other.',
    parameters: OfQueue,
    query: SandboxQuery,
    answer: { status: 202, description: 'The event has been added to the run.', schema: SandboxAcceptedEvent },
    problems: [...OF_EVENTS, 'invalid_request', 'sandbox_run_full', 'sandbox_spent'],
  },
  {
    method: 'GET',
    path: '/events/sandbox/{tenant}/runs/{runId}',
    operation: 'readSandboxRun',
    tag: 'Sandbox',
    summary: 'Retrieve the report of a run',
    description:
      'Returns where each event of the run was routed. For each delivery, it also returns the expected and actual attempts with their headers. A run is kept for 24 hours after its first event. Retrieving the run or adding an event makes Sluice evaluate waiting events again. You can find the result in the next report. An event includes up to 100 integrations. Since a page contains up to 1,000 verdicts, it may include fewer events than `limit`.',
    parameters: OfRun,
    query: RunReportQuery,
    answer: { status: 200, description: 'The run along with a page of its events.', schema: RunReport },
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
