/** The meaning of a code: its HTTP status, a fixed title, and what the caller should change. */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  readonly remedy: string;
}

/**
 * Every problem that an answer may contain, by its stable code. The only source of statuses and titles: routes name
 * codes, never numbers. Codes are only added; the meaning of a released code does not change.
 */
export const PROBLEMS = {
  malformed_request: {
    status: 400,
    title: 'The request is not well-formed HTTP',
    remedy: 'Check the request line, the Host header, the other headers and the framing of the body.',
  },
  sandbox_parameter: {
    status: 400,
    title: 'The production route takes no sandbox parameters',
    remedy: 'Remove sb_fail_code, sb_fail_count and runId, or send the event to /events/sandbox/{tenant}/{queue}.',
  },
  misplaced_token: {
    status: 400,
    title: 'The bearer token is in the wrong place',
    remedy: 'Send it once, only as "Authorization: Bearer <token>".',
  },
  unauthenticated: {
    status: 401,
    title: 'A valid ingress key is required',
    remedy:
      'Send an ingress key of this workspace as "Authorization: Bearer <key>" or as "x-api-key". Access tokens of an identity provider work for /waas only. Create a key with POST /waas/producer/{tenant}/ingress-keys, or as a Secret of type sluice.dev/ingress-key in the namespace of the workspace, with 20 bytes or more in its field key.',
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
      'Check the path and the port. The ingress role (SLUICE_INGRESS_PORT) serves POST /events/{tenant}/{queue}. The facade role (SLUICE_FACADE_PORT) serves /waas; /openapi.json lists its routes.',
  },
  unknown_queue: {
    status: 404,
    title: 'This workspace has no such stream',
    remedy: 'Check the key of the stream in the path, or apply the stream first.',
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
  stream_closing: {
    status: 409,
    title: 'The stream is being deleted',
    remedy:
      'It delivers its remaining events and accepts no new ones. Stop sending, or apply the stream again once it is gone.',
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
  insufficient_tokens: {
    status: 402,
    title: 'The account has too few tokens',
    remedy: "Raise the account's includedTokens or change its plan. A dryRun returns the price.",
  },
  forbidden: {
    status: 403,
    title: 'You may not access this',
    remedy:
      'Use an access token of an owner of the workspace or of its account. Objects that do not exist get the same answer.',
  },
  unknown_resource: {
    status: 404,
    title: 'This workspace has no such object',
    remedy: 'Check the id. List the objects to see their ids.',
  },
  unknown_event: {
    status: 404,
    title: 'There is no such event',
    remedy: 'Check the id. Events are kept for the retention of the stream.',
  },
  unknown_invitation: {
    status: 404,
    title: 'There is no such invitation',
    remedy: 'Check the token. It is in the e-mail, or in the Secret beside the Integration.',
  },
  changed_meanwhile: {
    status: 409,
    title: 'The object was changed concurrently',
    remedy: 'Read it again and repeat the call.',
  },
  field_managed: {
    status: 409,
    title: 'Another field manager owns a field',
    remedy: 'Change the field where it is managed (Git, kubectl), or remove it there.',
  },
  refused_by_policy: {
    status: 409,
    title: 'A cluster policy refuses the change',
    remedy: 'Change what the policy asks for, or ask the operator. Retrying does not help.',
  },
  workspace_paused: {
    status: 409,
    title: 'The workspace is paused',
    remedy:
      'Ask the operator to remove the annotation sluice.dev/paused from the Workspace. Events still flow. To stop them, block, deactivate, revoke or unsubscribe: these calls work now.',
  },
  being_deleted: {
    status: 409,
    title: 'The object is being deleted',
    remedy:
      'Wait until it is gone, then create it again. A package stays until no Block names it. A stream with deletionPolicy Retain stays until its events are delivered or expired.',
  },
  not_reconcilable: {
    status: 409,
    title: 'The object cannot be applied as it is',
    remedy: 'Change what detail names. Your change is stored.',
  },
  stream_name_conflict: {
    status: 409,
    title: 'Another stream has this key',
    remedy: 'Choose a name whose slug is free.',
  },
  package_key_conflict: {
    status: 409,
    title: 'Another package has this key',
    remedy: 'Use that package, or choose a name whose slug is free. Archived packages keep their keys.',
  },
  package_archived: {
    status: 409,
    title: 'The package is archived',
    remedy: 'It takes no new streams, names or blocks. Create another package.',
  },
  integration_closed: {
    status: 409,
    title: 'The integration is closed',
    remedy: 'It was declined, revoked or has expired. Invite the partner again.',
  },
  revoked_elsewhere: {
    status: 409,
    title: 'Another Activation keeps the group key closed',
    remedy: 'Unset revoked in the object that detail names, or delete it.',
  },
  superseded: {
    status: 409,
    title: 'A later call superseded this one',
    remedy: 'Repeat the call if you want its result; otherwise do nothing.',
  },
  managed_elsewhere: {
    status: 409,
    title: 'Another Block covers the same target',
    remedy: 'Delete the objects that detail names where they are managed.',
  },
  stream_blocked: {
    status: 409,
    title: 'The stream is blocked for this integration',
    remedy: 'Ask the producer to unblock it.',
  },
  stream_deprecated: {
    status: 409,
    title: 'The stream is deprecated',
    remedy: 'It takes no new subscriptions. Existing ones continue.',
  },
  integration_not_active: {
    status: 409,
    title: 'The integration is not active',
    remedy: 'Accept the invitation first, or ask the producer to invite again.',
  },
  subscription_exists: {
    status: 409,
    title: 'The stream has a different subscription',
    remedy: 'Change the subscription that detail names with PUT, or delete it first.',
  },
  subscription_not_live: {
    status: 409,
    title: 'The subscription cannot receive events now',
    remedy: 'Read its status, then resume it or change its endpoint.',
  },
  no_endpoint: {
    status: 409,
    title: 'The subscription has no endpoint',
    remedy: 'Pull and acknowledge its events, or set an endpoint with PUT.',
  },
  has_endpoint: {
    status: 409,
    title: 'The subscription has an endpoint',
    remedy: 'Only a 2xx of the endpoint acknowledges its events. Skip the events that you do not want.',
  },
  group_key_inactive: {
    status: 409,
    title: "The event's group key is not active for this integration",
    remedy: 'Ask the producer to activate it.',
  },
  event_open: {
    status: 409,
    title: 'The event has not ended yet',
    remedy: 'It is still being delivered. Retry it now with recover, or end it with skip.',
  },
  event_ended: {
    status: 409,
    title: 'The event ended in another state',
    remedy: 'Read the event. Replay it to get it again.',
  },
  replay_conflict: {
    status: 409,
    title: 'Another replay used this Idempotency-Key',
    remedy: 'Send a new key for each replay. Reuse a key only to repeat the same request.',
  },
  invitation_used: {
    status: 409,
    title: 'The invitation was answered already',
    remedy: 'If it was not you, ask the producer for a new one.',
  },
  free_account_exists: {
    status: 409,
    title: 'You already have a Free account',
    remedy: 'Send its id as accountPublicId.',
  },
  ingress_key_exists: {
    status: 409,
    title: 'The workspace has an ingress key with this id',
    remedy: 'Choose another id, or delete that key first. A key is shown only when it is created.',
  },
  event_expired: {
    status: 410,
    title: 'The event is no longer kept',
    remedy: 'The retention of the stream has removed it. Ask the producer to send it again.',
  },
  invitation_expired: {
    status: 410,
    title: 'The invitation has expired',
    remedy: 'Ask the producer to invite you again.',
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
  not_in_force: {
    status: 503,
    title: 'Stored, but not in force yet',
    remedy: 'Wait Retry-After seconds, then repeat the call. That is safe.',
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;

export type ProblemCode = keyof typeof PROBLEMS;
