/**
 * Lists every condition type and reason for each kind, including their descriptions. Both the names and the reference
 * pages are generated from this table.
 */

/** Reasons for the Ready condition of any kind, and conditions that are only present if they are True. */
const EVERY_KIND = {
  Ready: {
    RedisUnavailable:
      'False: The controller has not applied this generation because Redis is unavailable or has lost its data. It retries. Objects that were applied before the outage stay Ready. See also the DataPlaneReachable condition of the Workspace.',
    WorkspacePaused:
      'The sluice.dev/paused annotation pauses the workspace. Events continue to flow. The controller applies this change when you remove the annotation.',
    WaitingForWorkspace:
      'Unknown, False: No Workspace owns this namespace. Changes from Unknown to False after five minutes.',
    SecretsForbidden:
      'False: The controller is not allowed to read the Secrets in this namespace, so it only applies changes that close routes or gates. This can only happen if it reads Secrets by namespace (SLUICE_SECRETS_ROLE).',
    ReconcileFailed:
      'Reconciliation failed due to an unexpected error. The controller retries it with exponential backoff.',
  },
  Reconciling: {
    Progressing: 'The controller is processing this generation.',
    Retrying: 'The last reconciliation failed. The controller will retry it.',
    Draining: 'The object is being deleted. The controller is waiting until its queue is empty.',
  },
  Stalled: {
    WaitingForWorkspace:
      'This namespace has not been owned by any Workspace for five minutes. Reconciliation resumes when the Workspace has been created.',
  },
} as const;

/** Returns the description for a missing reference in the spec. The same reason will be used with `Ready=False`. */
const missing = (what: string) =>
  `The ${what} has been missing for five minutes. Reconciliation resumes when it has been created.`;

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
      Published: 'True: The catalog lists the stream, and partners can subscribe to it.',
      Deprecated:
        'False: The catalog does not list the stream, and partners cannot subscribe to it. Ingress still accepts its events, and existing subscriptions continue to work.',
      WaitingForWorkspace: 'Unknown: No catalog lists the stream because no Workspace owns this namespace.',
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
        'False: At least one stream in the list could not be found. The message includes up to ten of the missing stream names.',
    },
  },
  Integration: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Pending:
        'True: The integration has been applied, but the partner has not accepted the invitation yet. Until then, no events are routed to the partner.',
      Active:
        "True: The integration has been applied and is active. Events with activated group keys are routed to the receiving workspace's Subscriptions, if there are any.",
      Closed: 'True: The integration has been applied. It is closed because it has expired or was declined or revoked.',
    },
    Accepted: {
      InvitationAccepted: 'True: The partner has accepted the invitation.',
      DirectGrant: 'True: The producer has granted access to the receiving workspace directly.',
      Pending: 'False: The partner has not responded to the invitation yet.',
      Declined: 'False: The partner has declined the invitation.',
      Expired: 'False: The invitation expired after 14 days without a response.',
      Revoked: 'False: The producer has revoked the integration.',
    },
    Admitted: {
      InvitationAccepted: 'True: The partner has accepted the invitation.',
      Subscribed: 'True: At least one Subscription in the receiving workspace uses the integration.',
      WorkspaceNotAdmitting:
        'False: No events are routed, because the receiving workspace has no Subscription that uses the integration, or does not exist.',
    },
    InvitationSent: {
      Sent: 'True: The mail server has accepted the invitation.',
      SecretWritten:
        'True: No mail server is configured. The controller has stored the token in the Secret <name>-invitation instead.',
      SmtpFailed: 'False: The mail server rejected the invitation or did not respond. The controller resends it.',
      SecretFailed: 'False: The controller could not write the Secret. It retries.',
      AddressLimitReached:
        'False: The workspace has sent an invitation to this address in the last 24 hours, even if that invitation has been revoked or deleted since. The controller sends the email at the time in the message.',
      AccountLimitReached:
        "False: The account's workspaces have sent the maximum number of invitations for 24 hours (invitationMailsPerDay). The controller sends the email when the limit allows it.",
    },
  },
  Activation: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      GateOpen: 'True: The activation has been applied. The group key is open for the integration.',
      GateClosed: 'True: The activation has been applied. The group key is closed for the integration.',
      WaitingForIntegration:
        'Unknown, False: The referenced integration could not be found. Changes from Unknown to False after five minutes.',
    },
    Stalled: { ...EVERY_KIND.Stalled, WaitingForIntegration: missing('integration') },
    Effective: {
      Routing: 'True: Events with this group key can be routed to the integration.',
      IntegrationPending: 'False: The partner has not accepted the integration yet.',
      Revoked: 'False: This Activation has been revoked.',
      RevokedElsewhere: 'False: Another Activation with the same integration and group key has been revoked.',
      IntegrationClosed: 'False: The integration has expired, or it was declined or revoked.',
    },
  },
  Block: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Applied: 'True: The controller has written the desired state to Redis.',
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
      Enforced: 'True: Events of the target are not delivered to the integration.',
      WaitingForIntegration:
        'Unknown: Waiting for the integration, which does not exist yet. The block takes effect when the integration has been created.',
      WaitingForTarget:
        'Unknown: Waiting for the target, which does not exist yet. The block takes effect when the target has been created.',
    },
  },
  Subscription: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Admitted: 'True: The controller has written the desired state to Redis.',
      WaitingForGrant:
        'Unknown: No integration with this name grants access to this workspace. It may be missing, declined, or revoked, or grant access to another workspace.',
      WaitingForStream:
        'Unknown, False: The referenced stream could not be found, or is being deleted. Changes from Unknown to False after five minutes.',
      Duplicate: 'False: An older Subscription already exists for the same integration and stream.',
      StreamDeprecated: 'False: New subscriptions are not accepted for deprecated streams.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForStream: missing('stream'),
      Duplicate: 'An older Subscription already exists for the same integration and stream. Delete one of the two.',
      StreamDeprecated:
        'The stream is deprecated. To resolve this, either publish the stream again or delete the Subscription.',
    },
    Live: {
      Live: 'True: Events are being routed. Sluice delivers events to the endpoint. Without an endpoint, the partner can pull them.',
      Blocked:
        'False: A Block on the stream, or on a package that contains it, pauses routing. Events are kept until their retention period ends.',
      Suspended: 'False: spec.suspended pauses routing. Events are kept until the end of their retention period.',
      EndpointDisabled:
        'False: A 410 response, or five days without a successful delivery, has disabled the endpoint. Events are kept in the inbox. To re-enable it, set spec.endpoint.enabledAt.',
      EndpointRefused:
        "False: The scheme, port, or IP address in the endpoint's URL is not allowed, or a Secret contains a value that cannot be used in a header. Events are kept in the inbox. The addresses of a host name are only checked by each attempt, which fails with address_refused.",
      WaitingForSecret:
        'False: A Secret or key referenced by a header does not exist, or the controller cannot read it. Events are kept in the inbox until the value has been read. After that, delivery resumes automatically.',
      HeaderNotReadable:
        'False: The sealed value of a header cannot be decrypted. The value was encrypted for another Subscription, header, or origin of the URL, or with a root key that the controller does not have. Events are kept in the inbox until the value is set again.',
      WaitingForConsent:
        'False: The endpoint has not agreed to receive events, which the operator requires. Until it responds with the WebHook-Allowed-Origin header, attempts fail and are retried as for an unreachable endpoint.',
      SigningKeyMissing:
        'False: The controller does not have the root key of the signing secret, or of the previous one within 24 hours of a rotation. Events are kept in the inbox until the key file is restored, or until the partner has rotated the secret so that neither needs the missing key.',
      SpecRefused:
        'False: The spec contains a value that cannot be applied, e.g. because the CRDs belong to another version. Routing to this Subscription alone is paused until you change the value. Events are kept until their retention period ends.',
      InsufficientTokens:
        "False: Routing is paused, because the producer's account does not exist or does not have enough tokens.",
      NotAdmitted: 'False: The Subscription is not admitted. For more information, see the Ready condition.',
    },
    SecretMirrored: {
      NameTaken:
        'False: The name <name>-signing is already in use by a Secret of a different type. Deliveries are still signed.',
      Refused:
        'False: The API server rejected the Secret <name>-signing, e.g. because of a quota or policy. The controller retries every five minutes. If the Secret exists, or if there is no endpoint, the Subscription does not have this condition.',
    },
    EndpointFailing: {
      FailingOneDay:
        'True: No delivery has succeeded in the last day. The message includes the time at which the endpoint will be disabled.',
      FailingThreeDays: 'True: No delivery has succeeded in the last three days.',
      FailingFourDays:
        'True: No delivery has succeeded in the last four days. After five days, the next failed attempt disables the endpoint.',
      EndpointDisabled:
        'False: No events are being sent because the endpoint is disabled. For more information, see the Live condition.',
      Recovered: 'False: A delivery has succeeded, or the endpoint has been re-enabled.',
    },
    BacklogAtRisk: {
      NearRetention:
        'True: The oldest waiting event has used up 80 % of its retention period. It will be lost when the period ends.',
      WithinRetention: 'False: No waiting event has used up 80 % of its retention period.',
    },
  },
  Workspace: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      NamespaceReady: 'True: The namespace exists, and the controller has written the routes to Redis.',
      PauseIgnored:
        'True: Same as NamespaceReady, but the sluice.dev/paused annotation has a value other than "true", which the controller ignores.',
      NamespaceNotAdopted:
        'False: The namespace exists but is missing the sluice.dev/workspace=<name> label, so no events are accepted or delivered. Events that were accepted before wait until you add the label, or until their retention period ends.',
      NamespaceTerminating: 'Unknown: The namespace is being deleted. After that, the controller creates it again.',
      WaitingForAccount:
        'Unknown, False: The referenced account could not be found. Changes from Unknown to False after five minutes.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForAccount: missing('account'),
      NamespaceNotAdopted:
        'The namespace exists, but the label for this workspace is missing. An administrator must add it.',
    },
    DataPlaneReachable: {
      RedisUnavailable:
        'False: Redis has not responded for one minute. Until it does, ingress does not accept any events and changes are delayed. Objects that were applied before keep their conditions.',
      RedisAnswers:
        'True: Redis has recovered from an outage. Workspaces do not have this condition if there was no outage.',
    },
    InsufficientTokens: {
      TokensSpent: 'True: The account has no tokens left, so routing is paused.',
      TokensLeft: 'False: The account either has tokens remaining or is on the Metered plan.',
    },
  },
  Account: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      LedgerReady: 'True: The controller has written the plan and the included tokens to Redis.',
      StillInUse: 'False: The account is being deleted but is still referenced by one or more Workspaces.',
    },
    LimitReached: {
      AtLimit:
        "True: The account's workspaces have reached at least one limit on the number of objects. The REST API rejects requests which would create additional objects.",
      NearLimit:
        "False: The account's workspaces are using at least 90 % of a limit, or at least 80 % after reaching 90 %.",
      WithinLimits:
        'False: The account is back within its limits. An account that was never close to a limit does not have this condition.',
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

/** A reason for the Ready condition of any kind. */
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
