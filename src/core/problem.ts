/** What a code stands for: its HTTP status, a title that never changes, and what the caller should do about it. */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  readonly remedy: string;
}

/**
 * Every problem that an answer may name, by its stable code. The one source of statuses and titles: a route names a
 * code and never a number. Codes are only added; what a released code means does not change.
 */
export const PROBLEMS = {
  malformed_request: {
    status: 400,
    title: 'The request is not well-formed HTTP',
    remedy: 'Check the request line, the Host header, the header lines and the framing of the body.',
  },
  sandbox_parameter: {
    status: 400,
    title: 'Sandbox parameters are not taken on the production route',
    remedy: 'Remove sb_fail_code, sb_fail_count and runId, or send the event to /events/sandbox/{tenant}/{queue}.',
  },
  malformed_cloudevent: {
    status: 400,
    title: 'The body is not JSON',
    remedy: 'With content type application/cloudevents+json the body must be one CloudEvent as UTF-8 JSON.',
  },
  unauthenticated: {
    status: 401,
    title: 'A valid key is needed',
    remedy: 'Send an ingress key of this workspace as "Authorization: Bearer <key>" or as "x-api-key".',
  },
  not_found: {
    status: 404,
    title: 'Nothing is here',
    remedy: 'Check the path: events are sent to POST /events/{tenant}/{queue}.',
  },
  unknown_queue: {
    status: 404,
    title: 'This workspace has no such queue',
    remedy: 'Check the name of the stream, or apply the stream first.',
  },
  method_not_allowed: {
    status: 405,
    title: 'This method is not allowed here',
    remedy: 'Use one of the methods that the Allow header names.',
  },
  request_timeout: {
    status: 408,
    title: 'The request did not arrive in time',
    remedy: 'Send the whole request without a pause; sending it again with the same id is safe.',
  },
  stream_closing: {
    status: 409,
    title: 'The stream is being deleted',
    remedy: 'It delivers what it has and takes nothing new. Stop sending, or apply the stream again once it is gone.',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    remedy: 'Send at most 262,144 bytes; put larger payloads elsewhere and send a reference.',
  },
  uri_too_long: {
    status: 414,
    title: 'The path is too long',
    remedy: 'Tenant ids have 24 characters, names of queues at most 63.',
  },
  expectation_failed: {
    status: 417,
    title: 'This expectation cannot be met',
    remedy: 'Only "Expect: 100-continue" is understood; leave the header out otherwise.',
  },
  unknown_event_type: {
    status: 422,
    title: 'The stream does not declare this event type',
    remedy: 'Send one of the declared event types, or add this one to the eventTypes of the stream.',
  },
  invalid_context: {
    status: 422,
    title: 'What describes the event is not valid',
    remedy: 'Change the headers or attributes that errors names.',
  },
  queue_full: {
    status: 429,
    title: 'The queue is full',
    remedy: 'Send again later with the same id. The quota frees as retention passes, or can be raised.',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    remedy: 'Send at most 16 KiB of headers.',
  },
  internal: {
    status: 500,
    title: 'Something went wrong here',
    remedy: 'Send again with the same id; if it stays so, tell the operator.',
  },
  unavailable: {
    status: 503,
    title: 'Not available at the moment',
    remedy: 'Send again after Retry-After seconds with the same id: an event is stored once per id.',
  },
  overloaded: {
    status: 503,
    title: 'Too many requests are waiting',
    remedy: 'Send again after Retry-After seconds with the same id: an event is stored once per id.',
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;

export type ProblemCode = keyof typeof PROBLEMS;

/** One fault: where it is (JSON Pointer into the body, header or query parameter) and what is wrong. Never the value. */
export interface ProblemError {
  readonly pointer?: string;
  readonly header?: string;
  readonly parameter?: string;
  readonly detail: string;
}

/** Body of an error answer, `application/problem+json` (RFC 9457); `code` is the stable part of `type`. */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ProblemCode;
  readonly errors?: readonly ProblemError[];
}

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

/**
 * The document for `code`. `detail` says what to change in this very request; without it, the code's own remedy. It
 * must hold nothing secret: no key, no token, no header that was sent.
 */
export function problem(code: ProblemCode, detail?: string, errors?: readonly ProblemError[]): ProblemDocument {
  const { status, title, remedy } = PROBLEMS[code];
  return {
    type: `https://sluice.dev/problems/${code}`,
    title,
    status,
    detail: detail ?? remedy,
    code,
    ...(errors === undefined || errors.length === 0 ? {} : { errors }),
  };
}
