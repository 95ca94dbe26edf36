/**
 * Lists every condition type and reason by kind, with their descriptions. Both the names and the reference pages are
 * generated from this table.
 */

/**
 * Reasons that may be used with the Ready condition of any kind, plus the conditions that are only present while True.
 */
const EVERY_KIND = {
  Ready: {
    RedisUnavailable:
      'False: This generation is not applied yet because Redis is unavailable or has lost its data. The controller retries automatically. During an outage, applied objects stay Ready. For more information, see the DataPlaneReachable condition of the Workspace.',
    WorkspacePaused:
      'The workspace has the annotation sluice.dev/paused. Events continue to flow, and the change is applied after you remove the annotation.',
    WaitingForWorkspace:
      'Unknown, False: No Workspace owns this namespace. The status changes from Unknown to False after five minutes.',
    ReconcileFailed: 'An unexpected error occurred. The controller retries with exponential backoff.',
    InvalidObject:
      'The stored object does not meet a validation rule, and the API server should have rejected it. To resolve this, edit the object.',
  },
  Reconciling: {
    Progressing: 'The controller is processing this generation.',
    Retrying: 'The last reconciliation failed. The controller will retry.',
    Draining: 'The object is being deleted. The controller waits until its queue is empty.',
  },
  Stalled: {
    InvalidObject: 'The stored object does not meet a validation rule. To resolve this, edit the object.',
    NamespaceNotAdopted:
      'The namespace exists, but it does not have the label for this workspace. An administrator must add the label.',
    NameConflict: 'Another object already uses this name. To resolve this, rename one of the objects.',
    Duplicate: 'An older object already has the same purpose. To resolve this, delete one of the objects.',
    WaitingForWorkspace:
      'No Workspace has owned this namespace for five minutes. Reconciliation resumes when you create the Workspace.',
  },
} as const;

/** Returns the description for a missing reference in the spec. The same reason is used with `Ready=False`. */
const missing = (what: string) =>
  `The ${what} has been missing for five minutes. Reconciliation resumes when you create it.`;

/** Condition types, reasons, and descriptions by kind. */
export const CONDITION_MEANING = {
  CatalogStream: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      QueueReady: 'True: The stream is applied and its queue accepts events.',
      NameConflict: 'False: Another stream of the workspace uses this queue name.',
      Draining:
        'False: The stream is being deleted. Its queue does not accept new events and delivers the remaining events.',
    },
    Published: {
      Published: 'True: The stream is in the catalog and accepts subscriptions.',
      Deprecated:
        'False: The stream is not in the catalog and does not accept new subscriptions. Existing subscriptions and ingress continue to work.',
      WaitingForWorkspace: 'Unknown: No Workspace owns this namespace, so the stream is not in a catalog.',
    },
  },
  Package: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Compiled: 'True: The Blocks of the package apply to all streams in the list.',
      StillBlocking: 'False: The package is being deleted, but Blocks still refer to it.',
    },
    StreamsResolved: {
      AllFound: 'True: All streams in the list exist.',
      StreamsMissing: 'False: Some streams in the list do not exist. The message contains up to ten of their names.',
    },
  },
  Integration: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Pending:
        'True: The integration is applied. The partner has not accepted the invitation yet, so no events are routed.',
      Active: 'True: The integration is applied and active. Events of activated group keys are routed.',
      Closed: 'True: The integration is applied and closed because it was declined, revoked or has expired.',
    },
    Accepted: {
      InvitationAccepted: 'True: The partner accepted the invitation.',
      DirectGrant: 'True: The producer granted access to the receiving workspace directly.',
      Pending: 'False: The partner has not responded to the invitation.',
      Declined: 'False: The partner declined the invitation.',
      Expired: 'False: The invitation expired because the partner did not respond within 14 days.',
      Revoked: 'False: The producer revoked the integration.',
    },
    Admitted: {
      InvitationAccepted: 'True: The partner accepted the invitation.',
      Subscribed: 'True: A Subscription in the receiving workspace uses the integration.',
      WorkspaceNotAdmitting:
        'False: No Subscription in the receiving workspace uses the integration, so no events are routed. This also applies if the workspace does not exist.',
    },
    InvitationSent: {
      Sent: 'True: The mail server accepted the invitation.',
      SecretWritten: 'True: No mail server is configured. You can find the token in the Secret <name>-invitation.',
      SmtpFailed:
        'False: The mail server rejected the invitation or did not respond. The controller retries automatically.',
      SecretFailed: 'False: The controller could not write the Secret. The controller retries automatically.',
    },
  },
  Activation: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      GateOpen: 'True: The activation is applied. The group key is open for the integration.',
      GateClosed: 'True: The activation is applied. The group key is closed for the integration.',
      WaitingForIntegration:
        'Unknown, False: The integration does not exist. The status changes from Unknown to False after five minutes.',
    },
    Stalled: { ...EVERY_KIND.Stalled, WaitingForIntegration: missing('integration') },
    Effective: {
      Routing: 'True: The integration can receive events of this group key.',
      IntegrationPending: 'False: The partner has not accepted the integration yet.',
      Revoked: 'False: This Activation is revoked.',
      RevokedElsewhere: 'False: Another Activation for the same integration and group key is revoked.',
      IntegrationClosed: 'False: The integration was declined, revoked or deleted, or it has expired.',
    },
  },
  Block: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Applied: 'True: The controller has written the desired state of the object to Redis.',
      WaitingForIntegration:
        'Unknown, False: The integration does not exist. The status changes from Unknown to False after five minutes.',
      WaitingForTarget:
        'Unknown, False: The stream or package does not exist. The status changes from Unknown to False after five minutes.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForIntegration: missing('integration'),
      WaitingForTarget: missing('stream or package'),
    },
    Enforced: {
      Enforced: 'True: The integration does not receive events from the target.',
      WaitingForIntegration:
        'Unknown: The integration does not exist yet. The block takes effect when you create the integration.',
      WaitingForTarget: 'Unknown: The target does not exist yet. The block takes effect when you create the target.',
    },
  },
  Subscription: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Admitted: 'True: The controller has written the desired state of the object to Redis.',
      WaitingForGrant:
        'Unknown: The producer has not granted this workspace access to an integration with that name. The integration might be missing, revoked, or granted to another workspace.',
      WaitingForStream:
        'Unknown, False: The stream does not exist. The status changes from Unknown to False after five minutes.',
      Duplicate: 'False: An older Subscription already exists for the same integration and stream.',
      StreamDeprecated: 'False: The stream is deprecated and does not accept new subscriptions.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForStream: missing('stream'),
      StreamDeprecated:
        'The stream is deprecated. To resolve this, publish the stream again or delete the Subscription.',
    },
    Live: {
      Live: 'True: Events are routed. If the subscription has an endpoint, events are delivered. Otherwise, you can pull them.',
      Blocked:
        'False: A Block applies to the stream. Routing is paused, and events are kept until their retention period ends.',
      Suspended: 'False: Routing is paused because spec.suspended is true.',
      EndpointDisabled:
        'False: The endpoint returned status 410, or it had no successful delivery for five days. Events are kept in the inbox.',
      EndpointRefused:
        'False: The endpoint is in a network that is not allowed, or a Secret contains a value that is not valid in a header. Events are kept in the inbox.',
      WaitingForSecret:
        'False: A header refers to a Secret or a key that does not exist. Events are kept in the inbox, and delivery resumes when you create the Secret.',
      InsufficientTokens: "False: Routing is paused because the producer's account does not have enough tokens.",
      IntegrationClosed: 'False: The integration was declined or revoked, or it has expired.',
      NotAdmitted: 'False: The Subscription is not admitted. For more information, see the Ready condition.',
    },
    SecretMirrored: {
      NameTaken:
        'False: A Secret with the name <name>-signing already exists and has a different type. Deliveries are still signed.',
      Refused:
        'False: The API server rejected the Secret <name>-signing, for example because of a quota or a policy. The controller retries every five minutes. This condition is absent if the Secret exists or if the Subscription does not have an endpoint.',
    },
    EndpointFailing: {
      FailingOneDay:
        'True: The endpoint has had no successful delivery for one day. The message contains the time when the endpoint will be disabled.',
      FailingThreeDays: 'True: The endpoint has had no successful delivery for three days.',
      FailingFourDays:
        'True: The endpoint has had no successful delivery for four days. After five days, the next failed attempt disables the endpoint.',
      EndpointDisabled:
        'False: The endpoint is disabled, and no events are sent. For more information, see the Live condition.',
      Recovered: 'False: A delivery was successful, or you enabled the endpoint again.',
    },
    BacklogAtRisk: {
      NearRetention: 'True: The retention period of the oldest waiting event ends soon, and the event will be lost.',
      WithinRetention: 'False: No waiting event is close to the end of its retention period.',
    },
  },
  Workspace: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      NamespaceReady: 'True: The namespace exists, and the controller has written the routes to Redis.',
      PauseIgnored:
        'True: The same as NamespaceReady. The annotation sluice.dev/paused has a value other than "true" and does not pause the workspace.',
      NamespaceNotAdopted: 'False: The namespace exists, but it does not have the label sluice.dev/workspace=<name>.',
      WaitingForAccount:
        'Unknown, False: The account does not exist. The status changes from Unknown to False after five minutes.',
    },
    Stalled: { ...EVERY_KIND.Stalled, WaitingForAccount: missing('account') },
    DataPlaneReachable: {
      RedisUnavailable:
        'False: Redis has not responded for one minute. Ingress does not accept events, and changes are delayed. Applied objects keep their conditions.',
      RedisAnswers: 'True: Redis is available again. This condition is absent if there was no outage.',
    },
    InsufficientTokens: {
      TokensSpent: 'True: The account has used all of its tokens. Routing is paused.',
      TokensLeft: 'False: The account has tokens, or it uses the Metered plan.',
    },
  },
  Account: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      LedgerReady: 'True: The controller has written the plan and the included tokens to Redis.',
    },
  },
} as const;

type Meanings = typeof CONDITION_MEANING;

function mapValues<T extends object, R>(table: T, map: (value: T[keyof T]) => R): { [K in keyof T]: R } {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key, map(value)])) as { [K in keyof T]: R };
}

/** Maps every key of `T` to its own name. */
type Names<T> = { readonly [K in keyof T]: K };

function namesOf<T extends object>(table: T): Names<T> {
  return Object.fromEntries(Object.keys(table).map(name => [name, name])) as Names<T>;
}

type ReasonTables = { readonly [K in keyof Meanings]: { readonly [C in keyof Meanings[K]]: Names<Meanings[K][C]> } };

/** Condition types by kind. For example, `CONDITION.Subscription.Live` is `'Live'`. */
export const CONDITION = mapValues(CONDITION_MEANING, namesOf) as {
  readonly [K in keyof Meanings]: Names<Meanings[K]>;
};

/** Condition reasons by kind. For example, `REASON.Subscription.Live.Blocked` is `'Blocked'`. */
export const REASON = mapValues(CONDITION_MEANING, conditions => mapValues(conditions, namesOf)) as ReasonTables;
