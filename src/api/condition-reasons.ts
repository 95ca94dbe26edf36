/**
 * Every condition type and reason of every kind, with its meaning. The names derive from this table, and the
 * reference pages list it.
 */

/** Reasons that every kind's Ready may have, and the conditions that are present only while True. */
const EVERY_KIND = {
  Ready: {
    RedisUnavailable:
      'False: this generation is not applied yet, because Redis is unreachable or has lost its data. The controller retries. Applied objects stay Ready during an outage; see DataPlaneReachable of the Workspace.',
    WorkspacePaused: 'The workspace has the annotation sluice.dev/paused: the change waits, events flow.',
    WaitingForWorkspace: 'Unknown: no Workspace owns this namespace yet. False: none has for five minutes.',
    ReconcileFailed: 'An unexpected error occurred. The controller retries with growing delays.',
    InvalidObject:
      'The stored object breaks a validation rule, which it should have been refused for. Edit the object.',
  },
  Reconciling: {
    Progressing: 'The controller is working on this generation.',
    Retrying: 'The last reconcile failed. The controller retries.',
    Draining: 'The object is being deleted and waits until its queue is empty.',
  },
  Stalled: {
    InvalidObject: 'The stored object breaks a validation rule. Edit the object.',
    NamespaceNotAdopted: 'The namespace exists without the label for this workspace. An administrator must add it.',
    NameConflict: 'Another object has the name. Rename one of them.',
    Duplicate: 'An older object has the same purpose. Delete one of them.',
    WaitingForWorkspace: 'No Workspace has owned this namespace for five minutes. Reconciling resumes when one does.',
  },
} as const;

/** Returns the meaning of a missing reference of the spec. `Ready=False` has the same reason. */
const missing = (what: string) => `The ${what} has been missing for five minutes. Reconciling resumes when it appears.`;

/** kind → condition type → reason → meaning. */
export const CONDITION_MEANING = {
  CatalogStream: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      QueueReady: 'True: the stream is applied, and its queue accepts events.',
      NameConflict: 'False: another stream of the workspace has this queue name.',
      Draining: 'False: the stream is being deleted. Its queue accepts no events and drains.',
    },
    Published: {
      Published: 'True: in the catalog, open for subscriptions.',
      Deprecated: 'False: not in the catalog, and closed for new subscriptions. Existing ones and ingress continue.',
      WaitingForWorkspace: 'Unknown: no Workspace owns this namespace, so the stream is not in a catalog.',
    },
  },
  Package: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Compiled: 'True: the Blocks of the package cover exactly the streams that it lists.',
      StillBlocking: 'False: the package is being deleted, and Blocks still name it.',
    },
    StreamsResolved: {
      AllFound: 'True: every listed stream exists.',
      StreamsMissing: 'False: some listed streams do not exist; the message names up to ten.',
    },
  },
  Integration: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Pending: 'True: applied. The partner has not accepted yet, and nothing is routed.',
      Active: 'True: applied. The integration is active, and events of activated group keys are routed.',
      Closed: 'True: applied. The integration is closed (declined, expired or revoked).',
    },
    Accepted: {
      InvitationAccepted: 'True: the invited partner accepted.',
      DirectGrant: 'True: the producer granted the receiving workspace directly.',
      Pending: 'False: the invitation is open.',
      Declined: 'False: the partner declined.',
      Expired: 'False: the invitation expired after 14 days without an answer.',
      Revoked: 'False: the producer revoked the integration.',
    },
    Admitted: {
      InvitationAccepted: 'True: the invited partner accepted.',
      Subscribed: 'True: a Subscription in the workspace of spec.workspace uses the integration.',
      WorkspaceNotAdmitting:
        'False: no Subscription in that workspace uses it yet, and nothing is routed. The same for a workspace that does not exist.',
    },
    InvitationSent: {
      Sent: 'True: the mail server accepted the invitation.',
      SecretWritten: 'True: no mail server is configured. The token is in the Secret <name>-invitation.',
      SmtpFailed: 'False: the mail server refused the invitation or did not answer. The controller retries.',
      SecretFailed: 'False: the Secret could not be written. The controller retries.',
    },
  },
  Activation: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      GateOpen: 'True: applied. The group key is open for the integration.',
      GateClosed: 'True: applied. The group key is closed for the integration.',
      WaitingForIntegration:
        'Unknown: the integration does not exist yet. False: it has been missing for five minutes.',
    },
    Stalled: { ...EVERY_KIND.Stalled, WaitingForIntegration: missing('integration') },
    Effective: {
      Routing: 'True: events of this group key may go to the integration.',
      IntegrationPending: 'False: the integration has not been accepted yet.',
      Revoked: 'False: this Activation is revoked.',
      RevokedElsewhere: 'False: another Activation for the same integration and group key is revoked.',
      IntegrationClosed: 'False: the integration is declined, expired, revoked or deleted.',
    },
  },
  Block: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Applied: "True: the object's desired state has been written to Redis.",
      WaitingForIntegration:
        'Unknown: the integration does not exist yet. False: it has been missing for five minutes.',
      WaitingForTarget:
        'Unknown: the stream or package does not exist yet. False: it has been missing for five minutes.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForIntegration: missing('integration'),
      WaitingForTarget: missing('stream or package'),
    },
    Enforced: {
      Enforced: 'True: no event of the target is routed to the integration.',
      WaitingForIntegration: 'Unknown: the integration does not exist yet. The block applies as soon as it does.',
      WaitingForTarget: 'Unknown: the target does not exist yet. The block applies as soon as it does.',
    },
  },
  Subscription: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Admitted: "True: the object's desired state has been written to Redis.",
      WaitingForGrant:
        'Unknown: the producer grants this workspace no integration of that name. It may be missing, revoked, or granted to another workspace.',
      WaitingForStream: 'Unknown: the stream does not exist yet. False: it has been missing for five minutes.',
      Duplicate: 'False: an older Subscription for the same integration and stream exists.',
      StreamDeprecated: 'False: the stream is deprecated and accepts no new subscriptions.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForStream: missing('stream'),
      StreamDeprecated: 'The stream is deprecated. Publish it again, or delete the Subscription.',
    },
    Live: {
      Live: 'True: events are routed and delivered or, without an endpoint, ready to pull.',
      Blocked: 'False: a Block covers the stream. Routing pauses; events are kept within the retention.',
      Suspended: 'False: spec.suspended is true. Routing pauses.',
      EndpointDisabled:
        'False: the endpoint answered 410, or no attempt succeeded for five days. Events are kept in the inbox.',
      EndpointRefused:
        'False: the endpoint is in a network that the operator does not allow, or a Secret holds a value that a header cannot have. Events are kept in the inbox.',
      WaitingForSecret:
        'False: a header takes its value from a Secret or key that does not exist. Events are kept in the inbox; delivery resumes when it exists.',
      InsufficientTokens: "False: the producer's account has too few tokens. Routing pauses.",
      IntegrationClosed: 'False: the integration is declined, expired or revoked.',
      NotAdmitted: 'False: the Subscription is not admitted; see Ready.',
    },
    SecretMirrored: {
      NameTaken: 'False: a Secret of another type has the name <name>-signing. Deliveries are still signed.',
      Refused:
        'False: the API server refuses the Secret <name>-signing, for example by a quota or a policy. The controller retries every five minutes. Absent: the Secret exists, or the Subscription has no endpoint.',
    },
    EndpointFailing: {
      FailingOneDay: 'True: no attempt succeeded for a day. The message has the time when the endpoint is disabled.',
      FailingThreeDays: 'True: no attempt succeeded for three days.',
      FailingFourDays:
        'True: no attempt succeeded for four days. After five days, the next failed attempt disables the endpoint.',
      EndpointDisabled: 'False: the endpoint is disabled, and nothing is sent; see Live.',
      Recovered: 'False: an attempt succeeded, or you enabled the endpoint again.',
    },
    BacklogAtRisk: {
      NearRetention: 'True: the oldest waiting event will soon reach the end of the retention and be lost.',
      WithinRetention: 'False: all waiting events are well within the retention.',
    },
  },
  Workspace: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      NamespaceReady: 'True: the namespace exists and the routes have been written to Redis.',
      PauseIgnored:
        'True: as NamespaceReady. The annotation sluice.dev/paused has another value than "true", and pauses nothing.',
      NamespaceNotAdopted: 'False: the namespace exists and lacks the label sluice.dev/workspace=<name>.',
      WaitingForAccount: 'Unknown: the account does not exist. False: it has been missing for five minutes.',
    },
    Stalled: { ...EVERY_KIND.Stalled, WaitingForAccount: missing('account') },
    DataPlaneReachable: {
      RedisUnavailable:
        'False: Redis has not answered for a minute. Events are not accepted, and changes wait. Applied objects keep their conditions.',
      RedisAnswers: 'True: Redis answers again. Absent: there was no outage.',
    },
    InsufficientTokens: {
      TokensSpent: "True: the account's tokens are spent. Routing pauses.",
      TokensLeft: 'False: the account has tokens, or its plan is Metered.',
    },
  },
  Account: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      LedgerReady: 'True: plan and included tokens have been written to Redis.',
    },
  },
} as const;

type Meanings = typeof CONDITION_MEANING;

function mapValues<T extends object, R>(table: T, map: (value: T[keyof T]) => R): { [K in keyof T]: R } {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key, map(value)])) as { [K in keyof T]: R };
}

/** The keys of `T`, each with its own name as value. */
type Names<T> = { readonly [K in keyof T]: K };

function namesOf<T extends object>(table: T): Names<T> {
  return Object.fromEntries(Object.keys(table).map(name => [name, name])) as Names<T>;
}

type ReasonTables = { readonly [K in keyof Meanings]: { readonly [C in keyof Meanings[K]]: Names<Meanings[K][C]> } };

/** The condition types of each kind: `CONDITION.Subscription.Live` is `'Live'`. */
export const CONDITION = mapValues(CONDITION_MEANING, namesOf) as {
  readonly [K in keyof Meanings]: Names<Meanings[K]>;
};

/** The reasons of each kind's conditions: `REASON.Subscription.Live.Blocked` is `'Blocked'`. */
export const REASON = mapValues(CONDITION_MEANING, conditions => mapValues(conditions, namesOf)) as ReasonTables;
