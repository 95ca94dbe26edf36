import { remedyOfLimit } from './limit-remedy.ts';
import type { ProblemKind } from './problem-kind.ts';

/** Problems that can occur when publishing an event, or in the sandbox. */
export const EVENT_PROBLEMS = {
  sandbox_parameter: {
    status: 400,
    title: 'The production route does not accept sandbox parameters',
    remedy:
      'Remove sb_fail_code, sb_fail_count and runId from the request, or send the event to /events/sandbox/{tenant}/{queue}.',
  },
  unauthenticated: {
    status: 401,
    title: 'A valid ingress key is required',
    remedy:
      'Send an ingress key of this workspace as "Authorization: Bearer <key>" or as "x-api-key". Access tokens of an identity provider are only accepted by /waas. To create a key, call POST /waas/producer/{tenant}/ingress-keys, or create a Secret of type sluice.dev/ingress-key in the namespace of the workspace, with at least 20 bytes in the field key.',
  },
  unknown_queue: {
    status: 404,
    title: 'The workspace does not have this stream',
    remedy: 'Check the key of the stream in the path. If the stream does not exist, create it first.',
  },
  stream_closing: {
    status: 409,
    title: 'The stream is being deleted',
    remedy:
      'The stream only delivers its remaining events. Stop publishing, or create the stream again once it is deleted.',
  },
  unknown_event_type: {
    status: 422,
    title: 'The stream does not accept this event type',
    remedy: 'Send one of the eventTypes of the stream, or add this type to them.',
  },
  malformed_cloudevent: {
    status: 422,
    title: 'The CloudEvent does not comply with CloudEvents 1.0',
    remedy: 'Change the headers or the body members in errors.',
  },
  invalid_context: {
    status: 422,
    title: 'The context of the event is not valid',
    remedy: 'Change the headers or attributes in errors.',
  },
  unknown_run: {
    status: 404,
    title: 'The sandbox run does not exist',
    remedy: 'Check the runId. A run is created with its first event and is kept for 24 hours.',
  },
  sandbox_run_full: {
    status: 422,
    title: 'The sandbox run is full',
    remedy: 'Use another runId. A run can have up to 1,000 events and 10,000 deliveries.',
  },
  sandbox_spent: {
    status: 429,
    title: 'The sandbox limit of this workspace is reached',
    remedy:
      'Retry after the number of seconds in Retry-After, when the oldest run ends. In 24 hours, a workspace can have up to 1,000 runs. Together, they can have up to 20,000 events, 50,000 deliveries and 64 MiB.',
  },
  queue_full: {
    status: 429,
    title: 'The queue is full',
    remedy:
      'Retry later with the same id. Space becomes available when older events expire. To get space earlier, decrease the retention of the stream, or ask the operator to increase the quota.',
  },
  storage_limit: {
    status: 429,
    title: 'The account has reached its limit of stored bytes',
    remedy: `Retry later with the same id. Space becomes available when older events expire. The limit storedBytes applies to all workspaces of the account together. ${remedyOfLimit('storedBytes')}`,
  },
  storage_pressure: {
    status: 429,
    title: 'The account stores more than its share of the Redis memory',
    remedy:
      'Send the event again with the same id after the number of seconds in Retry-After. Space becomes available when older events expire. To get space earlier, decrease the retention of your streams, or ask the operator to increase the memory of Redis.',
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;
