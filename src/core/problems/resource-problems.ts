import type { ProblemKind } from './problem-kind.ts';

/** Problems of the objects that a call of `/waas` reads or changes. */
export const RESOURCE_PROBLEMS = {
  insufficient_tokens: {
    status: 402,
    title: 'The account has too few tokens',
    remedy: "Raise the account's includedTokens or change its plan. A dryRun returns the price.",
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
  not_in_force: {
    status: 503,
    title: 'Stored, but not in force yet',
    remedy: 'Wait Retry-After seconds, then repeat the call. That is safe.',
  },
} as const satisfies Readonly<Record<string, ProblemKind>>;
