import type { ProblemKind } from './problem-kind.ts';

/** Problems with the request itself (for example, its format or its credentials), or with the server processing it. */
export const REQUEST_PROBLEMS = {
  malformed_request: {
    status: 400,
    title: 'The request is not valid HTTP',
    remedy: 'Check the request line, the Host header, the other headers and the framing of the body.',
  },
  misplaced_token: {
    status: 400,
    title: 'The bearer token is in the wrong place',
    remedy: 'Send the token once, in the header "Authorization: Bearer <token>".',
  },
  missing_token: {
    status: 401,
    title: 'A bearer token is required',
    remedy:
      'Send an access token of your identity provider as "Authorization: Bearer <token>". You cannot use ingress keys with this API.',
  },
  invalid_token: {
    status: 401,
    title: 'The bearer token is not valid',
    remedy: 'Get a new access token from a configured issuer for the configured audience.',
  },
  not_found: {
    status: 404,
    title: 'The path does not exist',
    remedy:
      'Check the path, the host, and the port. Send events to POST /events/{tenant}/{queue} at the address of ingress, and calls of /waas to the address of the REST API (the facade). If you do not know these addresses, ask the operator. /openapi.json lists the paths of an address.',
  },
  method_not_allowed: {
    status: 405,
    title: 'The path does not support this method',
    remedy: 'Use one of the methods in the Allow header.',
  },
  request_timeout: {
    status: 408,
    title: 'The request timed out',
    remedy: 'Send the whole request without a pause. You can safely send the event again with the same id.',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    remedy:
      'Send at most 262,144 bytes per event. If your payload is larger, store it elsewhere and send a reference. Calls to /waas accept at most 16 KiB, or 1 MiB if they accept a schema or a list. Their bodies can have at most 5,000 fields and items.',
  },
  uri_too_long: {
    status: 414,
    title: 'The path is too long',
    remedy: 'Check the path: tenant ids have 24 characters, and queue names at most 63.',
  },
  expectation_failed: {
    status: 417,
    title: 'The Expect header is not supported',
    remedy: 'Send "Expect: 100-continue" or remove the Expect header.',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    remedy: 'Send at most 16 KiB of headers with an event and at most 32 KiB with a call to /waas.',
  },
  internal: {
    status: 500,
    title: 'An internal error occurred',
    remedy: 'Retry the request. If you publish an event, use the same id. If the error persists, contact the operator.',
  },
  missing_permission: {
    status: 500,
    title: 'The facade lacks a required Kubernetes permission',
    remedy: 'Ask the operator to bind the ClusterRole sluice-facade. Retrying does not help.',
  },
  unavailable: {
    status: 503,
    title: 'The service is temporarily unavailable',
    remedy:
      'Retry after the number of seconds in Retry-After. If you send an event again with the same id, it is stored only once. You can safely repeat a call unless its description says otherwise.',
  },
  overloaded: {
    status: 503,
    title: 'Too many requests are waiting',
    remedy:
      'Retry after the number of seconds in Retry-After. If you send an event again with the same id, it is stored only once. You can safely repeat a call unless its description says otherwise.',
  },
  issuer_unavailable: {
    status: 503,
    title: 'The keys of the token issuer are not available',
    remedy: 'Retry with the same token after the number of seconds in Retry-After.',
  },
  malformed_body: {
    status: 400,
    title: 'The body is not valid JSON',
    remedy: 'Send a single JSON value in UTF-8 (RFC 8259).',
  },
  malformed_id: {
    status: 400,
    title: 'An id in the path is not valid',
    remedy: 'Ids consist of a prefix, such as ten_, and 20 characters (35 for an event). Copy the id from a response.',
  },
  malformed_cursor: {
    status: 400,
    title: 'The cursor does not belong to this list',
    remedy:
      'Send the nextCursor (or resumeCursor) of the previous page of the same list unchanged, or no cursor for the first page.',
  },
  ambiguous_request: {
    status: 400,
    title: 'The body and the query contain different values',
    remedy: 'Send each field either in the body or as a query parameter. If you send both, use the same value.',
  },
  forbidden: {
    status: 403,
    title: 'You do not have access to this object',
    remedy:
      'Use an access token of an owner of the workspace or its account. You receive the same response if the object does not exist.',
  },
  insufficient_scope: {
    status: 403,
    title: 'The token does not have the required scope',
    remedy:
      'Request an access token with the scope named in WWW-Authenticate: waas:read, waas:write, waas:keys, or waas:replay. Scopes do not include each other.',
  },
  insufficient_role: {
    status: 403,
    title: 'Your role does not permit this call',
    remedy:
      'Ask an Owner of the account for the role named in detail. Viewers can read everything except secrets and ingress keys. Only Owners can change members.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'The content type or encoding is not supported',
    remedy:
      'Use application/json for /waas. Events can have any content type except CloudEvents batches and CloudEvents formats other than JSON. Do not send Content-Encoding, because bodies cannot be compressed.',
  },
  invalid_request: {
    status: 422,
    title: 'The request is not valid',
    remedy: 'Change the fields in errors.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    remedy:
      'Retry after the number of seconds in Retry-After. The headers RateLimit and RateLimit-Policy contain your remaining points and the limits. You can safely send an event again with the same id.',
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;
