/**
 * Every condition type and every reason of every kind, each with its meaning in a line. The names are derived from
 * this one table; the reference pages list it.
 */

/** Conditions that stand only while True, and the reasons that every kind's Ready may have. */
const EVERY_KIND = {
  Ready: {
    RedisUnavailable:
      'False: this generation is not applied yet, because Redis does not answer, or has lost its data; it is tried again. What is applied says nothing of an outage: see DataPlaneReachable of the Workspace.',
    WorkspacePaused: 'The workspace is annotated sluice.dev/paused: the change waits, data flows.',
    WaitingForWorkspace: 'Unknown: no Workspace owns this namespace yet. False: for five minutes.',
    ReconcileFailed: 'Something unexpected failed; it is tried again with growing delays.',
    InvalidObject: 'The object breaks a rule that its stored form should not be able to break; it waits for an edit.',
  },
  Reconciling: {
    Progressing: 'The controller is at work on this generation.',
    Retrying: 'The last try failed; another one follows.',
    Draining: 'The object is being deleted and waits for its queue to run empty.',
  },
  Stalled: {
    InvalidObject: 'Only an edit of the object can help.',
    NamespaceNotAdopted: 'The namespace exists and is not labelled for this workspace; only an administrator can help.',
    NameConflict: 'Another object has the name; only renaming one of them can help.',
    Duplicate: 'An older object says the same; only deleting one of them can help.',
    WaitingForWorkspace: 'No Workspace has owned this namespace for five minutes; it goes on by itself when one does.',
  },
} as const;

/** Says it of a reference of the spec, beside `Ready=False` with the same reason. */
const missing = (what: string) =>
  `The ${what} has been missing for five minutes; it goes on by itself when it appears.`;

/** kind → condition type → reason → meaning. */
export const CONDITION_MEANING = {
  CatalogStream: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      QueueReady: 'True: the queue takes events and Redis states what the object says.',
      NameConflict: 'False: another stream of the workspace has this queue name.',
      Draining: 'False: the stream is being deleted; its queue takes no events and runs empty.',
    },
    Published: {
      Published: 'True: in the catalog, open for subscriptions.',
      Deprecated: 'False: out of the catalog, no new subscriptions; existing ones and ingress go on.',
      WaitingForWorkspace: 'Unknown: no Workspace owns this namespace, so the stream is in no catalog.',
    },
  },
  Package: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Compiled: "True: the package's blocks cover exactly the streams that it lists.",
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
      Pending: 'True: Redis says that the partner has not accepted yet; nothing is routed.',
      Active: 'True: Redis says that the partner has accepted; what is activated is routed.',
      Closed: 'True: Redis says that the integration is closed (declined, expired or revoked).',
    },
    Accepted: {
      InvitationAccepted: 'True: the invited partner accepted.',
      DirectGrant: 'True: the producer named the receiving workspace, without an acceptance.',
      Pending: 'False: the invitation is open.',
      Declined: 'False: the partner declined.',
      Expired: 'False: the invitation was not answered in time (14 days).',
      Revoked: 'False: the producer revoked the integration.',
    },
    Admitted: {
      InvitationAccepted: 'True: the invited partner accepted.',
      Subscribed: 'True: a Subscription of the workspace that spec.workspace names uses the integration.',
      WorkspaceNotAdmitting:
        'False: no Subscription of that workspace uses it yet; nothing is routed. Says the same whether that workspace exists or not.',
    },
    InvitationSent: {
      Sent: 'True: the mail server took the invitation.',
      SecretWritten: 'True: there is no mail server; the token is in the Secret <name>-invitation.',
      SmtpFailed: 'False: the mail server refused or did not answer; it is tried again.',
      SecretFailed: 'False: the Secret could not be written; it is tried again.',
    },
  },
  Activation: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      GateOpen: 'True: Redis says that this group key is open for the integration.',
      GateClosed: 'True: Redis says that this group key is closed for the integration.',
      WaitingForIntegration: 'Unknown: the integration does not exist yet. False: for five minutes.',
    },
    Stalled: { ...EVERY_KIND.Stalled, WaitingForIntegration: missing('integration') },
    Effective: {
      Routing: 'True: events of this group key may go to the integration.',
      IntegrationPending: 'False: the integration has not been accepted yet.',
      Revoked: 'False: this object says revoked.',
      RevokedElsewhere: 'False: another object for the same integration and group key says revoked.',
      IntegrationClosed: 'False: the integration is declined, expired, revoked or gone.',
    },
  },
  Block: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Applied: 'True: Redis states what the object says.',
      WaitingForIntegration: 'Unknown: the integration does not exist yet. False: for five minutes.',
      WaitingForTarget: 'Unknown: the stream or package does not exist yet. False: for five minutes.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForIntegration: missing('integration'),
      WaitingForTarget: missing('stream or package'),
    },
    Enforced: {
      Enforced: 'True: no event of the target is routed to the integration.',
      WaitingForIntegration: 'Unknown: the integration does not exist yet; the block holds from its first moment.',
      WaitingForTarget: 'Unknown: the target does not exist yet; the block holds from its first moment.',
    },
  },
  Subscription: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      Admitted: 'True: Redis states what the object says.',
      WaitingForGrant:
        'Unknown: the producer grants this workspace nothing under that name. Missing, foreign and revoked look alike.',
      WaitingForStream: 'Unknown: the stream does not exist yet. False: for five minutes.',
      Duplicate: 'False: an older Subscription for the same integration and stream exists.',
      StreamDeprecated: 'False: the stream is deprecated and takes no new subscriptions.',
    },
    Stalled: {
      ...EVERY_KIND.Stalled,
      WaitingForStream: missing('stream'),
      StreamDeprecated: 'Only publishing the stream again, or deleting the object, can help.',
    },
    Live: {
      Live: 'True: events are routed and delivered (or held for pulling, without an endpoint).',
      Blocked: 'False: a Block covers the stream; routing pauses, nothing is lost within the retention.',
      Suspended: 'False: spec.suspended; routing pauses.',
      EndpointDisabled: 'False: the endpoint answered 410 or only failed for five days; events are kept in the inbox.',
      EndpointRefused:
        'False: the endpoint is in a network that the operator does not allow, or a Secret holds what cannot be the value of a header; events are kept.',
      WaitingForSecret:
        'False: a header takes its value from a Secret, or a key of it, that is not there; events are kept, and it goes on by itself when it is.',
      InsufficientTokens: "False: the producer's account has too few tokens; routing pauses.",
      IntegrationClosed: 'False: the integration is declined, expired or revoked.',
      NotAdmitted: 'False: the object is not admitted; see Ready.',
    },
    SecretMirrored: {
      NameTaken: 'False: a Secret of another type has the name <name>-signing; deliveries are signed all the same.',
      Refused:
        'False: the API server refuses the Secret <name>-signing, as by a quota or a policy; it is tried again every five minutes. Absent: it is there, or there is no endpoint.',
    },
    EndpointFailing: {
      FailingOneDay: 'True: no attempt succeeded for a day; the message says when the endpoint will be disabled.',
      FailingThreeDays: 'True: no attempt succeeded for three days.',
      FailingFourDays: 'True: no attempt succeeded for four days; with five, the next one that fails disables it.',
      EndpointDisabled: 'False: it is disabled by now, and nothing is sent; see Live.',
      Recovered: 'False: an attempt succeeded again, or the endpoint was enabled anew.',
    },
    BacklogAtRisk: {
      NearRetention: 'True: the oldest waiting event will soon be older than the retention and be lost.',
      WithinRetention: 'False: everything that waits is well inside the retention.',
    },
  },
  Workspace: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      NamespaceReady: 'True: the namespace is there and the routes are stated in Redis.',
      NamespaceNotAdopted: 'False: the namespace exists and lacks the label sluice.dev/workspace=<name>.',
      WaitingForAccount: 'Unknown: the account does not exist, or not any more. False: for five minutes.',
    },
    Stalled: { ...EVERY_KIND.Stalled, WaitingForAccount: missing('account') },
    DataPlaneReachable: {
      RedisUnavailable:
        'False: Redis has not answered for a minute; events are not accepted, changes wait. Objects whose generation is applied stay as they are.',
      RedisAnswers: 'True: Redis answers again. Absent: it always did.',
    },
    InsufficientTokens: {
      TokensSpent: "True: the account's tokens are spent; distribution pauses.",
      TokensLeft: 'False: there are tokens, or the plan only counts.',
    },
  },
  Account: {
    ...EVERY_KIND,
    Ready: {
      ...EVERY_KIND.Ready,
      LedgerReady: 'True: plan and included tokens are stated in Redis.',
    },
  },
} as const;

type Meanings = typeof CONDITION_MEANING;

function mapValues<T extends object, R>(table: T, map: (value: T[keyof T]) => R): { [K in keyof T]: R } {
  return Object.fromEntries(Object.entries(table).map(([key, value]) => [key, map(value)])) as { [K in keyof T]: R };
}

/** Names that hold themselves: the keys of `T`, each with its own name as value. */
type Names<T> = { readonly [K in keyof T]: K };

function namesOf<T extends object>(table: T): Names<T> {
  return Object.fromEntries(Object.keys(table).map(name => [name, name])) as Names<T>;
}

type ReasonTables = { readonly [K in keyof Meanings]: { readonly [C in keyof Meanings[K]]: Names<Meanings[K][C]> } };

/** Condition types of each kind: `CONDITION.Subscription.Live` is `'Live'`. */
export const CONDITION = mapValues(CONDITION_MEANING, namesOf) as {
  readonly [K in keyof Meanings]: Names<Meanings[K]>;
};

/** Reasons of each kind's conditions: `REASON.Subscription.Live.Blocked` is `'Blocked'`. */
export const REASON = mapValues(CONDITION_MEANING, conditions => mapValues(conditions, namesOf)) as ReasonTables;

/** The condition types of a kind: `'Ready' | 'Reconciling' | 'Stalled' | …`. */
export type ConditionType<K extends keyof Meanings> = keyof Meanings[K] & string;

/** The reasons that a condition of a kind may have. */
export type ReasonOf<K extends keyof Meanings, C extends ConditionType<K>> = keyof Meanings[K][C] & string;
