import type { ProblemKind } from './problem-kind.ts';

/** Problems with objects read or changed by a `/waas` request. */
export const RESOURCE_PROBLEMS = {
  insufficient_tokens: {
    status: 402,
    title: 'The account does not have enough tokens',
    remedy: 'Increase includedTokens of the account or change its plan. To get the price, use dryRun.',
  },
  invitation_email_mismatch: {
    status: 403,
    title: 'The invitation is for a different email address',
    remedy:
      'Sign in with the invited email address. Your access token must contain this address in the claim email, and true in email_verified.',
  },
  unknown_resource: {
    status: 404,
    title: 'The workspace does not have this object',
    remedy: 'Check the id. To find the ids of your objects, list them.',
  },
  unknown_event: {
    status: 404,
    title: 'The event does not exist',
    remedy: 'Check the id. Events are kept until the retention period of the stream ends.',
  },
  unknown_invitation: {
    status: 404,
    title: 'The invitation does not exist',
    remedy: 'Check the token. You can find it in the email or in the Secret of the Integration.',
  },
  changed_meanwhile: {
    status: 409,
    title: 'The object was modified by another request',
    remedy: 'Read the object again and repeat the call.',
  },
  precondition_failed: {
    status: 412,
    title: 'The resource no longer has the entity tag in If-Match',
    remedy: 'Read the resource again, repeat your change with its current content, and send its new ETag in If-Match.',
  },
  field_managed: {
    status: 409,
    title: 'Another field manager owns this field',
    remedy: 'Change the field where it is managed, such as in Git or with kubectl, or remove it there.',
  },
  refused_by_policy: {
    status: 409,
    title: 'A cluster policy rejected the change',
    remedy: 'Change the request to comply with the policy, or contact the operator. Retrying does not help.',
  },
  workspace_paused: {
    status: 409,
    title: 'The workspace is paused',
    remedy:
      'Ask the operator to remove the sluice.dev/paused annotation from the Workspace. Events continue to flow. To stop them, you can still block, deactivate, revoke or unsubscribe. You can also delete ingress keys.',
  },
  being_deleted: {
    status: 409,
    title: 'The object is being deleted',
    remedy:
      'Wait until the object is deleted and then create it again. A package is deleted after its last Block is deleted. A stream with deletionPolicy Retain is deleted after all of its events are delivered or expired.',
  },
  not_reconcilable: {
    status: 409,
    title: 'The object cannot be applied',
    remedy: 'Your change is stored but not in force. Correct the fields named in detail.',
  },
  limit_reached: {
    status: 409,
    title: 'The account has reached a limit',
    remedy:
      'Delete objects that you no longer need, or ask the operator to raise the limit for this account. GET /waas/accounts/{account}/limits returns your limits and usage. You can always deactivate, unblock, revoke, unsubscribe, and archive.',
  },
  stream_name_conflict: {
    status: 409,
    title: 'Another stream uses this key',
    remedy: 'Choose another name. The key of a stream is derived from its name.',
  },
  package_key_conflict: {
    status: 409,
    title: 'Another package uses this key',
    remedy:
      'Use the existing package, or choose another name. The key of a package is derived from its name. Archived packages keep their keys.',
  },
  package_archived: {
    status: 409,
    title: 'The package is archived',
    remedy: 'You cannot add streams, blocks or a new name to an archived package. Create another package instead.',
  },
  integration_closed: {
    status: 409,
    title: 'The integration is closed',
    remedy: 'The integration has been declined, revoked, or has expired. Invite the partner again.',
  },
  revoked_elsewhere: {
    status: 409,
    title: 'Another Activation keeps the group key closed',
    remedy: 'Set revoked to false in the Activation named in detail, or delete it.',
  },
  superseded: {
    status: 409,
    title: 'A later call replaced this call',
    remedy: 'If you still want the result of this call, repeat it.',
  },
  managed_elsewhere: {
    status: 409,
    title: 'The object is managed by another tool',
    remedy: 'Delete the objects named in detail with the tool that manages them, such as Git or kubectl.',
  },
  stream_blocked: {
    status: 409,
    title: 'The stream is blocked for this integration',
    remedy: 'Ask the producer to unblock the stream.',
  },
  stream_deprecated: {
    status: 409,
    title: 'The stream is deprecated',
    remedy: 'Ask the producer to publish the stream again. Existing subscriptions continue to work.',
  },
  integration_not_active: {
    status: 409,
    title: 'The integration is not active',
    remedy:
      'If the invitation is pending, accept it. If the integration was declined or revoked, ask the producer for a new invitation.',
  },
  subscription_exists: {
    status: 409,
    title: 'The stream already has a different subscription',
    remedy: 'Use PUT to change the subscription named in detail, or delete it first.',
  },
  subscription_not_live: {
    status: 409,
    title: 'The subscription cannot receive events',
    remedy: 'Check the status of the subscription and then resume it or change its endpoint.',
  },
  no_endpoint: {
    status: 409,
    title: 'The subscription does not have an endpoint',
    remedy: 'Pull and acknowledge the events or use PUT to set an endpoint.',
  },
  has_endpoint: {
    status: 409,
    title: 'The subscription has an endpoint',
    remedy:
      'Events are sent to the endpoint. If it responds with a 2xx status, the delivery ends. To pull and acknowledge events instead, remove the endpoint. To discard events, skip them.',
  },
  group_key_inactive: {
    status: 409,
    title: 'The group key of the event is not active for this integration',
    remedy: 'Ask the producer to activate the group key.',
  },
  event_open: {
    status: 409,
    title: 'The delivery of the event has not ended',
    remedy: 'To retry the event immediately, use recover. To end the delivery, use skip.',
  },
  event_ended: {
    status: 409,
    title: 'The delivery of the event ended with a different state',
    remedy: 'Check the state of the event. To receive the event again, replay it.',
  },
  idempotency_conflict: {
    status: 422,
    title: 'Another request used this Idempotency-Key',
    remedy: 'Use a new key for each request. You can only use the same key to repeat the same request.',
  },
  idempotency_in_progress: {
    status: 409,
    title: 'The request with this Idempotency-Key is still in progress',
    remedy: 'Retry with the same key and body after the number of seconds in Retry-After.',
  },
  mail_limit_reached: {
    status: 409,
    title: 'The invitation cannot be sent by email yet',
    remedy:
      'Repeat the call at the time in detail. Within 24 hours, a workspace can send one invitation to each address. All workspaces of an account together can send invitationMailsPerDay invitations.',
  },
  invitation_used: {
    status: 409,
    title: 'The invitation was already answered',
    remedy: 'If you did not answer the invitation, ask the producer for a new invitation.',
  },
  free_account_exists: {
    status: 409,
    title: 'You already have a Free account',
    remedy: 'Send the id of your account as accountPublicId.',
  },
  ingress_key_exists: {
    status: 409,
    title: 'The workspace already has an ingress key with this id',
    remedy: 'Choose another id or delete the existing key first. A key is shown only once, when you create it.',
  },
  event_expired: {
    status: 410,
    title: 'The event is no longer available',
    remedy: 'The retention period of the stream has ended for this event. Ask the producer to send it again.',
  },
  invitation_expired: {
    status: 410,
    title: 'The invitation has expired',
    remedy: 'Ask the producer to send a new invitation.',
  },
  not_in_force: {
    status: 503,
    title: 'The change is stored but is not in force yet',
    remedy: 'Wait for the number of seconds in Retry-After and then repeat the call. You can safely repeat this call.',
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;
