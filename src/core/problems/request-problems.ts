import type { ProblemKind } from './problem-kind.ts';

/** Problems of a request itself: its form, its credentials, and the server that takes it. */
export const REQUEST_PROBLEMS = {
  malformed_request: {
    status: 400,
    title: 'The request is not well-formed HTTP',
    remedy: 'Check the request line, the Host header, the other headers and the framing of the body.',
  },
  misplaced_token: {
    status: 400,
    title: 'The bearer token is in the wrong place',
    remedy: 'Send it once, only as "Authorization: Bearer <token>".',
  },
  missing_token: {
    status: 401,
    title: 'A bearer token is required',
    remedy:
      'Send an access token of your identity provider as "Authorization: Bearer <token>". Ingress keys do not work here.',
  },
  invalid_token: {
    status: 401,
    title: 'The bearer token is not accepted',
    remedy: 'Get a new access token from a configured issuer for the configured audience.',
  },
  not_found: {
    status: 404,
    title: 'There is no such path',
    remedy:
      'Check the path and the port. The ingress role (SLUICE_INGRESS_PORT) serves POST /events/{tenant}/{queue}. The facade role (SLUICE_FACADE_PORT) serves /waas. /openapi.json of each lists its routes.',
  },
  method_not_allowed: {
    status: 405,
    title: 'This path does not support the method',
    remedy: 'Use one of the methods in the Allow header.',
  },
  request_timeout: {
    status: 408,
    title: 'The request did not arrive in time',
    remedy: 'Send the whole request without a pause. Sending it again with the same id is safe.',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    remedy:
      'Send at most 262,144 bytes per event; store larger payloads elsewhere and send a reference. To /waas, send at most 16 KiB, or 1 MiB if the call takes a schema or a list, and at most 5,000 fields and items.',
  },
  uri_too_long: {
    status: 414,
    title: 'The path is too long',
    remedy: 'Tenant ids have 24 characters, names of queues have at most 63.',
  },
  expectation_failed: {
    status: 417,
    title: 'This Expect header is not supported',
    remedy: 'Send "Expect: 100-continue" or no Expect header.',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    remedy: 'Send at most 16 KiB of headers with an event, and 32 KiB to /waas.',
  },
  internal: {
    status: 500,
    title: 'An internal error occurred',
    remedy: 'Retry, an event with the same id. If the error persists, contact the operator.',
  },
  missing_permission: {
    status: 500,
    title: 'The facade lacks a permission in Kubernetes',
    remedy: 'Ask the operator to bind the ClusterRole sluice-facade. Retrying does not help until then.',
  },
  unavailable: {
    status: 503,
    title: 'The service is not available at the moment',
    remedy: 'Wait Retry-After seconds, then retry. Repeating a call is safe, and an event is stored once per id.',
  },
  overloaded: {
    status: 503,
    title: 'Too many requests are waiting',
    remedy: 'Wait Retry-After seconds, then retry. Repeating a call is safe, and an event is stored once per id.',
  },
  issuer_unavailable: {
    status: 503,
    title: 'The keys of the token issuer cannot be read',
    remedy: 'Wait Retry-After seconds, then retry with the same token.',
  },
  malformed_body: {
    status: 400,
    title: 'The body is not JSON',
    remedy: 'Send one JSON value in UTF-8 (RFC 8259).',
  },
  malformed_id: {
    status: 400,
    title: 'An id in the path is malformed',
    remedy: 'An id is a prefix such as ten_, followed by 20 characters. Copy it from an answer.',
  },
  malformed_cursor: {
    status: 400,
    title: 'The cursor does not belong to this list',
    remedy: 'Send the nextCursor of the previous page unchanged, or no cursor to start again.',
  },
  ambiguous_request: {
    status: 400,
    title: 'Body and query contradict each other',
    remedy: 'Send the fields in the body or as query parameters, or the same values in both.',
  },
  forbidden: {
    status: 403,
    title: 'You may not access this',
    remedy:
      'Use an access token of an owner of the workspace or of its account. Objects that do not exist get the same answer.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'This content type is not supported',
    remedy:
      'Send application/json to /waas. Events may have any content type except CloudEvents batches and CloudEvents formats other than JSON.',
  },
  invalid_request: {
    status: 422,
    title: 'The request is invalid',
    remedy: 'Change the fields that errors lists.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    remedy: 'Wait Retry-After seconds, then retry. The RateLimit headers contain the remaining quota.',
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;
