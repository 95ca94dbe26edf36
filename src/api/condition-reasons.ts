/**
 * Lists every condition type and reason for each kind, including their descriptions. Both the names and the reference
 * pages are generated from this table.
 */

/**
 * Reasons that can be used with the Ready condition of any kind, and the conditions that are only present if they are
 * True.
 */
const EVERY_KIND = {
  Ready: {
    RedisUnavailable:
      'False: This generation has not been applied yet, either because Redis is unavailable or because it has lost its data. The controller will retry this automatically. Objects that have already been applied will stay Ready during an outage. See the DataPlaneReachable condition of the Workspace for more information.',
    WorkspacePaused:
      'Reconciliation is paused by the annotation sluice.dev/paused on the workspace. Events will continue to flow, and this change will be applied when the annotation has been removed.',
    WaitingForWorkspace:
      'Unknown, False: No Workspace owns this namespace. Changes from Unknown to False after five minutes.',
    SecretsForbidden:
      'False: The controller is not allowed to read the Secrets of this namespace, so its routes stay as they are. This is only possible if Secrets are read by namespace (SLUICE_SECRETS_ROLE).',
    ReconcileFailed: 'Reconciliation failed due to an unexpected error. It will be retried with exponential backoff.',
  },
  Reconciling: {
    Progressing: 'This generation is currently being processed.',
    Retrying: 'The last reconciliation failed and will be retried.',
    Draining: 'The object is being deleted, and the controller is waiting for its queue to drain.',
  },
  Stalled: {
    WaitingForWorkspace:
      'This namespace has not been owned by any Workspace for five minutes. Reconciliation will resume once the Workspace is created.',
  },
} as const;

/**
 * Returns the description to use if a reference in the spec is missing. The same reason will be used with
 * `Ready=False`.
 */
const missing = (what: string) =>
  `The ${what} has been missing for five minutes. Reconciliation will resume once it has been created.`;

/** Condition types, reasons, and descriptions by kind. */
export const CONDITION_MEANING = {
  CatalogStream: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      QueueReady: 'True: The stream has been applied and its queue is accepting events.',
      Draining:
        'False: The stream is being deleted. New events are rejected while the remaining events in its queue are delivered.',
    },
    Published: {
      Published: 'True: The stream is listed in the catalog and can be subscribed to.',
      Deprecated:
        "False: The stream is no longer listed in the catalog and cannot be subscribed to. This doesn't affect ingress or existing subscriptions.",
      WaitingForWorkspace: 'Unknown: Not listed in any catalog, since no Workspace owns this namespace.',
    },
  },
  Package: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Compiled: 'True: Blocks for this package apply to every stream in the list.',
      StillBlocking: 'False: The package is being deleted but is still referenced by one or more Blocks.',
    },
    StreamsResolved: {
      AllFound: 'True: Every stream in the list was found.',
      StreamsMissing:
        'False: One or more streams in the list could not be found. Up to ten of the missing names are included in the message.',
    },
  },
  Integration: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Pending:
        'True: The integration has been applied but the invitation has not been accepted yet. Events will not be routed until then.',
      Active:
        'True: The integration has been applied and is active, i.e. events with activated group keys are being routed.',
      Closed:
        'True: The integration has been applied. It is closed because it has expired, or was declined or revoked.',
    },
    Accepted: {
      InvitationAccepted: 'True: The invitation was accepted by the partner.',
      DirectGrant: 'True: Access was granted directly to the receiving workspace by the producer.',
      Pending: 'False: Waiting for the partner to respond to the invitation.',
      Declined: 'False: The invitation was declined by the partner.',
      Expired: 'False: The invitation expired after 14 days without a response.',
      Revoked: 'False: The integration was revoked by the producer.',
    },
    Admitted: {
      InvitationAccepted: 'True: The invitation was accepted by the partner.',
      Subscribed: 'True: The integration is used by at least one Subscription in the receiving workspace.',
      WorkspaceNotAdmitting:
        'False: No events will be routed, because there is no Subscription in the receiving workspace that uses the integration. This is also reported if the workspace does not exist.',
    },
    InvitationSent: {
      Sent: 'True: The invitation has been accepted for delivery by the mail server.',
      SecretWritten:
        'True: No mail server is configured, so the token can be found in the Secret <name>-invitation instead.',
      SmtpFailed:
        'False: The invitation was rejected by the mail server, or the server failed to respond. The controller will retry this automatically.',
      SecretFailed: 'False: Failed to write the Secret. The controller will retry this automatically.',
      AddressLimitReached:
        'False: The workspace has sent an invitation to this address in the last 24 hours, which may be revoked or deleted by now. It will be sent automatically at the time in the message.',
      AccountLimitReached:
        'False: The workspaces of the account have sent as many invitations in the last 24 hours as the account may send (invitationMailsPerDay). It will be sent automatically when the limit allows it.',
    },
  },
  Activation: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      GateOpen: 'True: The activation has been applied, leaving the group key open for the integration.',
      GateClosed: 'True: The activation has been applied, leaving the group key closed for the integration.',
      WaitingForIntegration:
        'Unknown, False: The referenced integration could not be found. Changes from Unknown to False after five minutes.',
    },
    Stalled: { ...EVERY_KIND.Stalled, WaitingForIntegration: missing('integration') },
    Effective: {
      Routing: 'True: Events with this group key can be routed to the integration.',
      IntegrationPending: 'False: The integration has not been accepted by the partner yet.',
      Revoked: 'False: This Activation has been revoked.',
      RevokedElsewhere: 'False: Another Activation for the same integration and group key has been revoked.',
      IntegrationClosed: 'False: The integration has expired, or it was declined, revoked, or deleted.',
    },
  },
  Block: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Applied: 'True: Desired state has been written to Redis.',
      WaitingForIntegration:
        'Unknown, False: The referenced integration could not be found. Changes from Unknown to False after five minutes.',
      WaitingForTarget:
        'Unknown, False: The stream or package being blocked could not be found. Changes from Unknown to False after five minutes.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForIntegration: missing('integration'),
      WaitingForTarget: missing('stream or package'),
    },
    Enforced: {
      Enforced: 'True: Events from the target are being withheld from the integration.',
      WaitingForIntegration:
        'Unknown: Waiting for the integration, which does not exist yet. The block will take effect when it has been created.',
      WaitingForTarget:
        "Unknown: Waiting for the target, which doesn't exist yet. The block will take effect when it has been created.",
    },
  },
  Subscription: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Admitted: 'True: Desired state has been written to Redis.',
      WaitingForGrant:
        'Unknown: This workspace has not been granted access to an integration with the given name. It might be missing, it might be revoked, or it might have been granted to a different workspace.',
      WaitingForStream:
        'Unknown, False: The referenced stream could not be found. Changes from Unknown to False after five minutes.',
      Duplicate: 'False: There is already an older Subscription for the same integration and stream.',
      StreamDeprecated: 'False: New subscriptions are not accepted for deprecated streams.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForStream: missing('stream'),
      Duplicate:
        'There is already an older Subscription for the same integration and stream. One of the two should be deleted.',
      StreamDeprecated: 'The stream is deprecated. Either publish it again or delete the Subscription to resolve this.',
    },
    Live: {
      Live: 'True: Events are being routed, and are either delivered to the endpoint or, when no endpoint is configured, available for pulling.',
      Blocked:
        'False: Routing is paused due to a Block on the stream. Events will be kept until the end of their retention period.',
      Suspended: 'False: Routing has been paused using spec.suspended.',
      EndpointDisabled:
        'False: The endpoint was disabled, either by a 410 response or after five days without a successful delivery. Events will stay in the inbox.',
      EndpointRefused:
        "False: The endpoint resolves to a network that isn't allowed, or a Secret contains a value that cannot be used in a header. Events will stay in the inbox.",
      WaitingForSecret:
        'False: A Secret or key referenced by a header could not be found. Events will stay in the inbox until the Secret has been created. After that, delivery will resume.',
      HeaderNotReadable:
        'False: The sealed value of a header could not be decrypted, because it was written for a different Subscription, header, or host, or with a root key that the controller does not have. Events will stay in the inbox until the value has been set again.',
      WaitingForConsent:
        'False: The endpoint has not agreed to receive events. Attempts fail and are retried like those to an unreachable endpoint until it responds with the header WebHook-Allowed-Origin. This is only used if the operator requires consent.',
      SigningKeyMissing:
        'False: The controller does not have the root key that the signing secret is derived from, or that of the previous secret within 24 hours of a rotation. Events will stay in the inbox until its file has been restored, or until the signing secret has been rotated so often that neither depends on it.',
      InsufficientTokens: "False: Routing is paused due to insufficient tokens in the producer's account.",
      IntegrationClosed: 'False: The integration has expired, or it was declined or revoked.',
      NotAdmitted: 'False: The Subscription has not been admitted. See the Ready condition for more information.',
    },
    SecretMirrored: {
      NameTaken:
        'False: The name <name>-signing is already taken by a Secret of a different type. This does not affect the signing, so deliveries will still be signed.',
      Refused:
        'False: The Secret <name>-signing was rejected by the API server, e.g. because of a quota or policy. The controller will retry this every five minutes. This condition is absent if the Secret exists, or if the Subscription does not have an endpoint.',
    },
    EndpointFailing: {
      FailingOneDay:
        'True: No delivery has succeeded for one day. The message includes the time at which the endpoint will be disabled.',
      FailingThreeDays: 'True: No delivery has succeeded for three days.',
      FailingFourDays:
        'True: No delivery has succeeded for four days. When five days have passed, the next failed attempt will disable the endpoint.',
      EndpointDisabled:
        'False: Nothing is being sent because the endpoint is disabled. See the Live condition for more information.',
      Recovered: 'False: Either a delivery succeeded or the endpoint was manually enabled again.',
    },
    BacklogAtRisk: {
      NearRetention:
        'True: The oldest waiting event is nearing the end of its retention period, after which it will be lost.',
      WithinRetention: 'False: None of the waiting events are close to the end of their retention period.',
    },
  },
  Workspace: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      NamespaceReady: 'True: The namespace exists and routes have been written to Redis.',
      PauseIgnored:
        'True: Equivalent to NamespaceReady, except that the annotation sluice.dev/paused is set to something other than "true" and is therefore ignored.',
      NamespaceNotAdopted: 'False: The namespace exists but is missing the label sluice.dev/workspace=<name>.',
      NamespaceTerminating: 'Unknown: The namespace is being deleted. It will be created again as soon as it is gone.',
      WaitingForAccount:
        'Unknown, False: The referenced account could not be found. Changes from Unknown to False after five minutes.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForAccount: missing('account'),
      NamespaceNotAdopted:
        'The namespace exists but is missing the label for this workspace, which must be added by an administrator.',
    },
    DataPlaneReachable: {
      RedisUnavailable:
        'False: No response from Redis for one minute. Ingress will not accept any events and changes will be delayed. Objects that have already been applied will keep their conditions.',
      RedisAnswers: 'True: Redis has recovered from an outage. This condition is absent if there was no outage.',
    },
    InsufficientTokens: {
      TokensSpent: 'True: All tokens in the account have been spent, so routing is paused.',
      TokensLeft: 'False: The account either has tokens remaining or is on the Metered plan.',
    },
  },
  Account: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      LedgerReady: 'True: The plan and included tokens have been written to Redis.',
      StillInUse: 'False: The account is being deleted but is still referenced by one or more Workspaces.',
    },
    LimitReached: {
      AtLimit:
        'True: The workspaces of the account have reached one or more of its limits on the number of objects. The REST API will refuse to create any more of them.',
      NearLimit: 'False: The workspaces of the account use 90 % or more of a limit, or 80 % or more after that.',
      WithinLimits:
        'False: The account is within its limits again. This condition is absent if the account was never near a limit.',
    },
  },
} as const;

type Meanings = typeof CONDITION_MEANING;

function mapValues<T extends object, R>(table: T, map: (value: T[keyof T]) => R): { [K in keyof T]: R } {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key, map(value)])) as { [K in keyof T]: R };
}

/** Maps each key of `T` to its own name. */
type Names<T> = { readonly [K in keyof T]: K };

function namesOf<T extends object>(table: T): Names<T> {
  return Object.fromEntries(Object.keys(table).map(name => [name, name])) as Names<T>;
}

/** A reason that can be used for the Ready condition, regardless of the kind. */
export type ReadyReason = { [K in keyof Meanings]: keyof Meanings[K]['Ready'] }[keyof Meanings];

type ReasonTables = { readonly [K in keyof Meanings]: { readonly [C in keyof Meanings[K]]: Names<Meanings[K][C]> } };

/** Condition types by kind. For example, `CONDITION.Subscription.Live` is `'Live'`. */
export const CONDITION = mapValues(CONDITION_MEANING, namesOf) as {
  readonly [K in keyof Meanings]: Names<Meanings[K]>;
};

/** Condition reasons by kind. For example, `REASON.Subscription.Live.Blocked` is `'Blocked'`. */
export const REASON = mapValues(CONDITION_MEANING, conditions =>
  mapValues(conditions, namesOf),
) as unknown as ReasonTables;
