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
  misplaced_token: {
    status: 400,
    title: 'The bearer token is not where it belongs',
    remedy: 'Send it once, as "Authorization: Bearer <token>", and nowhere else.',
  },
  unauthenticated: {
    status: 401,
    title: 'A valid key is needed',
    remedy:
      'Send an ingress key of this very workspace as "Authorization: Bearer <key>" or as "x-api-key"; tokens of an identity provider open /waas only. Make a key with POST /waas/producer/{tenant}/ingress-keys, or as a Secret of type sluice.dev/ingress-key in the namespace of the workspace, with 20 bytes or more in its field key.',
  },
  missing_token: {
    status: 401,
    title: 'A bearer token is needed',
    remedy:
      'Send a token of your identity provider as "Authorization: Bearer <token>"; ingress keys open nothing here.',
  },
  invalid_token: {
    status: 401,
    title: 'The bearer token is not accepted',
    remedy: 'Get a new token from a configured issuer, for the configured audience.',
  },
  not_found: {
    status: 404,
    title: 'Nothing is here',
    remedy:
      'Check the path and the port: the ingress role (SLUICE_INGRESS_PORT) takes POST /events/{tenant}/{queue}; the facade role (SLUICE_FACADE_PORT) serves /waas, and /openapi.json lists its routes.',
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
    remedy:
      'Send at most 262,144 bytes as an event (put larger payloads elsewhere and send a reference). To /waas, send at most 16 KiB, or 1 MiB where a call takes a schema or a list, and at most 5,000 fields and items.',
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
  malformed_cloudevent: {
    status: 422,
    title: 'The CloudEvent breaks a rule of CloudEvents 1.0',
    remedy: 'Change the headers or members of the body that errors names.',
  },
  invalid_context: {
    status: 422,
    title: 'What describes the event is not valid',
    remedy: 'Change the headers or attributes that errors names.',
  },
  unknown_run: {
    status: 404,
    title: 'There is no such sandbox run',
    remedy: 'Check the runId. A run is made with its first event, and kept for 24 hours.',
  },
  sandbox_run_full: {
    status: 422,
    title: 'The sandbox run is full',
    remedy: 'Go on with another runId: a run takes 1,000 events and 10,000 deliveries.',
  },
  sandbox_spent: {
    status: 429,
    title: 'The sandbox of this workspace is used up',
    remedy:
      'Send again after Retry-After seconds, when the oldest run ends. The runs of 24 hours take 20,000 events, 50,000 deliveries and 64 MiB, and are 1,000 at most.',
  },
  queue_full: {
    status: 429,
    title: 'The queue is full',
    remedy: 'Send again later with the same id. The quota frees as retention passes, or can be raised.',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    remedy: 'Send at most 16 KiB of headers with an event, 32 KiB to /waas.',
  },
  internal: {
    status: 500,
    title: 'Something went wrong here',
    remedy: 'Send it again, an event with the same id; if it stays so, tell the operator.',
  },
  missing_permission: {
    status: 500,
    title: 'The service lacks a permission in Kubernetes',
    remedy: 'Ask the operator to bind the ClusterRole sluice-facade: sending it again changes nothing until then.',
  },
  unavailable: {
    status: 503,
    title: 'Not available at the moment',
    remedy: 'Send again after Retry-After seconds: every call may be repeated, and an event is stored once per id.',
  },
  overloaded: {
    status: 503,
    title: 'Too many requests are waiting',
    remedy: 'Send again after Retry-After seconds: every call may be repeated, and an event is stored once per id.',
  },
  issuer_unavailable: {
    status: 503,
    title: 'The issuer of the token cannot be asked for its keys',
    remedy: 'Send again after Retry-After seconds with the same token.',
  },
  malformed_body: {
    status: 400,
    title: 'The body is not JSON',
    remedy: 'Send one JSON value in UTF-8 (RFC 8259).',
  },
  malformed_id: {
    status: 400,
    title: 'An id in the path is malformed',
    remedy: 'Ids are a prefix such as ten_ and 20 characters; copy them from an answer.',
  },
  malformed_cursor: {
    status: 400,
    title: 'The cursor is none of this list',
    remedy: 'Send the nextCursor of the page before as it was, or none to begin anew.',
  },
  ambiguous_request: {
    status: 400,
    title: 'Body and query say different things',
    remedy: 'Send the fields in the body or as query parameters, or the same values in both.',
  },
  insufficient_tokens: {
    status: 402,
    title: 'The account has too few tokens',
    remedy: "Raise the account's includedTokens or change its plan; a dryRun tells the price.",
  },
  forbidden: {
    status: 403,
    title: 'This is not yours',
    remedy:
      'Use a token of an owner of the workspace, or of its account. What does not exist is answered the same way.',
  },
  unknown_resource: {
    status: 404,
    title: 'This workspace has no such object',
    remedy: 'Check the id; lists show what there is.',
  },
  unknown_event: {
    status: 404,
    title: 'There is no such event here',
    remedy: 'Check the id. Records are kept as long as the retention of the stream.',
  },
  unknown_invitation: {
    status: 404,
    title: 'There is no such invitation',
    remedy: 'Check the token: it is in the e-mail, or in the Secret beside the Integration.',
  },
  changed_meanwhile: {
    status: 409,
    title: 'The object has changed meanwhile',
    remedy: 'Read it again and repeat the call.',
  },
  field_managed: {
    status: 409,
    title: 'A field is managed by somebody else',
    remedy: 'Change it where it is managed (Git, kubectl), or give it up there.',
  },
  refused_by_policy: {
    status: 409,
    title: 'A policy of the cluster refuses the change',
    remedy: 'Change what the policy names, or ask the operator: sending the same again is refused again.',
  },
  workspace_paused: {
    status: 409,
    title: 'The workspace is paused',
    remedy:
      'Ask the operator to take the annotation sluice.dev/paused from the Workspace. Events flow meanwhile; to stop them, block, deactivate, revoke or unsubscribe: that takes effect at once.',
  },
  being_deleted: {
    status: 409,
    title: 'The object is being deleted',
    remedy:
      'Wait until it is gone, then make it anew; a package stays until no Block names it, a stream that retains until its events are delivered or expired.',
  },
  not_reconcilable: {
    status: 409,
    title: 'The object cannot come into force as it is',
    remedy: 'Change what the detail names; the change itself is stored.',
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
    remedy: 'It takes no new streams, names or blocks; make another package.',
  },
  integration_closed: {
    status: 409,
    title: 'The integration is closed',
    remedy: 'It was declined, revoked or has expired; invite the partner again.',
  },
  revoked_elsewhere: {
    status: 409,
    title: 'Another Activation keeps the group key closed',
    remedy: 'Take back revoked in the object that the detail names, or delete it.',
  },
  superseded: {
    status: 409,
    title: 'A later call has taken this one back',
    remedy: 'Nothing, if that was wanted; otherwise repeat the call.',
  },
  managed_elsewhere: {
    status: 409,
    title: 'Another Block covers the same target',
    remedy: 'Delete the objects that the detail names where they are managed.',
  },
  stream_blocked: {
    status: 409,
    title: 'The stream is blocked for this integration',
    remedy: 'Ask the producer to un-block it.',
  },
  stream_deprecated: {
    status: 409,
    title: 'The stream is deprecated',
    remedy: 'It takes no new subscriptions; existing ones go on.',
  },
  integration_not_active: {
    status: 409,
    title: 'The integration is not active',
    remedy: 'Accept the invitation first, or ask the producer to invite again.',
  },
  subscription_exists: {
    status: 409,
    title: 'The stream is subscribed to otherwise',
    remedy: 'Change the subscription that the detail names with PUT, or delete it first.',
  },
  subscription_not_live: {
    status: 409,
    title: 'Nothing may be sent to this subscription now',
    remedy: 'Look at its status: resume it, or change its endpoint.',
  },
  no_endpoint: {
    status: 409,
    title: 'The subscription has no endpoint',
    remedy: 'Its events are pulled and acknowledged; set an endpoint with PUT to have them sent.',
  },
  has_endpoint: {
    status: 409,
    title: 'The subscription has an endpoint',
    remedy: 'Its events are sent, and acknowledged by the 2xx of the endpoint alone; skip what is not wanted.',
  },
  group_key_inactive: {
    status: 409,
    title: "The event's group key is not active for this integration",
    remedy: 'Ask the producer to activate it.',
  },
  event_open: {
    status: 409,
    title: 'The event has not ended yet',
    remedy: 'It is still being delivered; recover lets it come at once, skip ends it.',
  },
  event_ended: {
    status: 409,
    title: 'The event has ended otherwise',
    remedy: 'Read the event; a replay lets it come again.',
  },
  replay_conflict: {
    status: 409,
    title: 'Another replay has this Idempotency-Key',
    remedy: 'Send a key of its own for each replay; the same key again only with the same request.',
  },
  invitation_used: {
    status: 409,
    title: 'The invitation has been answered',
    remedy: 'Ask the producer for a new one if it was not you.',
  },
  free_account_exists: {
    status: 409,
    title: 'You have a free account already',
    remedy: 'Name it as accountPublicId.',
  },
  ingress_key_exists: {
    status: 409,
    title: 'The workspace has an ingress key of this id',
    remedy: 'Choose another id, or delete that key first: a key is shown once, when it is made.',
  },
  event_expired: {
    status: 410,
    title: 'The event is not kept any more',
    remedy: 'Ask the producer to send it again: the retention of the stream has removed it.',
  },
  invitation_expired: {
    status: 410,
    title: 'The invitation has expired',
    remedy: 'Ask the producer to invite you again.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'This content type is not taken here',
    remedy:
      'Send application/json to /waas. Send an event with any content type but those of batches of CloudEvents and of CloudEvents formats other than JSON.',
  },
  invalid_request: {
    status: 422,
    title: 'The request breaks a rule',
    remedy: 'Change what errors names.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    remedy: 'Send again after Retry-After seconds; RateLimit headers tell what is left.',
  },
  not_in_force: {
    status: 503,
    title: 'Stored, but not in force yet',
    remedy: 'Repeat the call after Retry-After seconds: that is safe.',
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;

export type ProblemCode = keyof typeof PROBLEMS;
