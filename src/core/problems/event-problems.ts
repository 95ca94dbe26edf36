import type { ProblemKind } from './problem-kind.ts';

/** Problems of publishing an event, and of the sandbox. */
export const EVENT_PROBLEMS = {
  sandbox_parameter: {
    status: 400,
    title: 'The production route takes no sandbox parameters',
    remedy: 'Remove sb_fail_code, sb_fail_count and runId, or send the event to /events/sandbox/{tenant}/{queue}.',
  },
  unauthenticated: {
    status: 401,
    title: 'A valid ingress key is required',
    remedy:
      'Send an ingress key of this workspace as "Authorization: Bearer <key>" or as "x-api-key". Access tokens of an identity provider work for /waas only. Create a key with POST /waas/producer/{tenant}/ingress-keys, or as a Secret of type sluice.dev/ingress-key in the namespace of the workspace, with 20 bytes or more in its field key.',
  },
  unknown_queue: {
    status: 404,
    title: 'This workspace has no such stream',
    remedy: 'Check the key of the stream in the path, or apply the stream first.',
  },
  stream_closing: {
    status: 409,
    title: 'The stream is being deleted',
    remedy:
      'It delivers its remaining events and accepts no new ones. Stop sending, or apply the stream again once it is gone.',
  },
  unknown_event_type: {
    status: 422,
    title: 'The stream does not declare this event type',
    remedy: 'Send a declared event type, or add this one to eventTypes of the stream.',
  },
  malformed_cloudevent: {
    status: 422,
    title: 'The CloudEvent violates CloudEvents 1.0',
    remedy: 'Change the headers or the members of the body that errors lists.',
  },
  invalid_context: {
    status: 422,
    title: 'The context of the event is invalid',
    remedy: 'Change the headers or attributes that errors lists.',
  },
  unknown_run: {
    status: 404,
    title: 'There is no such sandbox run',
    remedy: 'Check the runId. The first event creates a run; it is kept for 24 hours.',
  },
  sandbox_run_full: {
    status: 422,
    title: 'The sandbox run is full',
    remedy: 'Continue with another runId. A run takes 1,000 events and 10,000 deliveries.',
  },
  sandbox_spent: {
    status: 429,
    title: 'The sandbox of this workspace is used up',
    remedy:
      'Wait Retry-After seconds until the oldest run ends, then retry. All runs of 24 hours together take 20,000 events, 50,000 deliveries and 64 MiB, in at most 1,000 runs.',
  },
  queue_full: {
    status: 429,
    title: 'The queue is full',
    remedy: "Retry later with the same id. Space frees as retention removes events; or raise the stream's quota.",
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;
