import type { CONDITION_MEANING } from '../../../src/api/condition-reasons.ts';
import type { KindName } from '../../../src/api/kinds/kinds.ts';

type Meanings = typeof CONDITION_MEANING;

/** Conditions that are evaluated in the same way for all kinds. */
type Common = 'Ready' | 'Reconciling' | 'Stalled';

/**
 * The meaning of a reason for an object that is Ready: its health, using the condition as the message, or `silent` if
 * there is nothing to report.
 */
export type Remark = 'silent' | 'Healthy' | 'Progressing' | 'Degraded';

/** Every reason of the conditions that only some kinds have. The compiler reports missing reasons. */
type Remarks = {
  readonly [K in KindName]: {
    readonly [C in Exclude<keyof Meanings[K], Common>]: { readonly [R in keyof Meanings[K][C]]: Remark };
  };
};

/**
 * Degraded means that the object's owner has to act. A Subscription is the only kind that can be in this state
 * while it is Ready because its endpoint and Secrets belong to its owner. Decisions, such as revoking or blocking, are
 * Healthy and mentioned in the message. The same is true if another party has to act: otherwise, Argo CD would wait for
 * this party without finishing its sync.
 */
export const REMARKS: Remarks = {
  Account: {
    LimitReached: { AtLimit: 'Healthy', NearLimit: 'silent', WithinLimits: 'silent' },
  },
  Workspace: {
    // Sluice retries, so this state ends automatically.
    DataPlaneReachable: { RedisUnavailable: 'Progressing', RedisAnswers: 'silent' },
    InsufficientTokens: { TokensSpent: 'Healthy', TokensLeft: 'silent' },
  },
  CatalogStream: {
    Published: { Published: 'silent', Deprecated: 'Healthy', WaitingForWorkspace: 'silent' },
  },
  Package: {
    StreamsResolved: { AllFound: 'silent', StreamsMissing: 'Healthy' },
  },
  Integration: {
    Accepted: {
      InvitationAccepted: 'silent',
      DirectGrant: 'silent',
      Pending: 'Healthy',
      Declined: 'Healthy',
      Expired: 'Healthy',
      Revoked: 'Healthy',
    },
    Admitted: { InvitationAccepted: 'silent', Subscribed: 'silent', WorkspaceNotAdmitting: 'Healthy' },
    InvitationSent: {
      Sent: 'silent',
      SecretWritten: 'silent',
      SmtpFailed: 'Healthy',
      SecretFailed: 'Healthy',
      AddressLimitReached: 'Healthy',
      AccountLimitReached: 'Healthy',
    },
  },
  Activation: {
    Effective: {
      Routing: 'silent',
      IntegrationPending: 'Healthy',
      Revoked: 'Healthy',
      RevokedElsewhere: 'Healthy',
      IntegrationClosed: 'Healthy',
    },
  },
  Block: {
    Enforced: { Enforced: 'silent', WaitingForIntegration: 'silent', WaitingForTarget: 'silent' },
  },
  Subscription: {
    Live: {
      Live: 'silent',
      Blocked: 'Healthy',
      Suspended: 'Healthy',
      EndpointDisabled: 'Degraded',
      EndpointRefused: 'Degraded',
      WaitingForSecret: 'Degraded',
      HeaderNotReadable: 'Degraded',
      WaitingForConsent: 'Degraded',
      SigningKeyMissing: 'Degraded',
      SpecRefused: 'Degraded',
      InsufficientTokens: 'Healthy',
      NotAdmitted: 'silent',
    },
    SecretMirrored: { NameTaken: 'Healthy', Refused: 'Healthy' },
    EndpointFailing: {
      FailingOneDay: 'Healthy',
      FailingThreeDays: 'Healthy',
      FailingFourDays: 'Healthy',
      EndpointDisabled: 'silent',
      Recovered: 'silent',
    },
    BacklogAtRisk: { NearRetention: 'Healthy', WithinRetention: 'silent' },
  },
};
