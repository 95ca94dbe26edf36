import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { COMMON, type Scenario } from './scenario.ts';
import { SUBSCRIPTIONS } from './subscriptions.ts';

const PAUSED_MESSAGE = 'WorkspacePaused: the sluice.dev/paused annotation pauses this workspace';

/** Scenarios by kind, which together contain every reason of every condition. A test fails if a reason is missing. */
export const SCENARIOS: { readonly [K in KindName]: readonly Scenario<K>[] } = {
  Account: [
    ...COMMON,
    { name: 'ledger-ready', health: 'Healthy', conditions: { Ready: 'True LedgerReady' } },
    {
      name: 'at-limit',
      health: 'Healthy',
      by: ['LimitReached'],
      conditions: { Ready: 'True LedgerReady', LimitReached: 'True AtLimit' },
    },
    {
      name: 'near-limit',
      health: 'Healthy',
      conditions: { Ready: 'True LedgerReady', LimitReached: 'False NearLimit' },
    },
    {
      name: 'within-limits',
      health: 'Healthy',
      conditions: { Ready: 'True LedgerReady', LimitReached: 'False WithinLimits' },
    },
    {
      name: 'still-in-use',
      health: 'Progressing',
      conditions: { Ready: 'False StillInUse', Reconciling: 'True Progressing' },
    },
  ],

  Workspace: [
    ...COMMON,
    { name: 'namespace-ready', health: 'Healthy', conditions: { Ready: 'True NamespaceReady' } },
    { name: 'pause-ignored', health: 'Healthy', paused: 'yes', conditions: { Ready: 'True PauseIgnored' } },
    {
      name: 'paused-while-ready',
      health: 'Suspended',
      message: PAUSED_MESSAGE,
      paused: 'true',
      conditions: { Ready: 'True NamespaceReady' },
    },
    {
      name: 'paused-while-waiting',
      health: 'Suspended',
      message: PAUSED_MESSAGE,
      paused: 'true',
      conditions: { Ready: 'Unknown WaitingForAccount', Reconciling: 'True Progressing' },
    },
    {
      name: 'paused-while-stalled',
      health: 'Degraded',
      by: ['Stalled'],
      paused: 'true',
      conditions: { Ready: 'False WaitingForAccount', Stalled: 'True WaitingForAccount' },
    },
    {
      name: 'namespace-of-others',
      health: 'Degraded',
      by: ['Stalled'],
      conditions: { Ready: 'False NamespaceNotAdopted', Stalled: 'True NamespaceNotAdopted' },
    },
    {
      name: 'namespace-terminating',
      health: 'Progressing',
      conditions: { Ready: 'Unknown NamespaceTerminating', Reconciling: 'True Progressing' },
    },
    {
      name: 'waiting-for-account',
      health: 'Progressing',
      conditions: { Ready: 'Unknown WaitingForAccount', Reconciling: 'True Progressing' },
    },
    {
      name: 'account-missing',
      health: 'Degraded',
      by: ['Stalled'],
      conditions: { Ready: 'False WaitingForAccount', Stalled: 'True WaitingForAccount' },
    },
    {
      name: 'redis-away',
      health: 'Progressing',
      by: ['DataPlaneReachable'],
      conditions: {
        Ready: 'True NamespaceReady',
        InsufficientTokens: 'True TokensSpent',
        DataPlaneReachable: 'False RedisUnavailable',
      },
    },
    {
      name: 'redis-answers',
      health: 'Healthy',
      conditions: { Ready: 'True NamespaceReady', DataPlaneReachable: 'True RedisAnswers' },
    },
    {
      name: 'tokens-spent',
      health: 'Healthy',
      by: ['InsufficientTokens'],
      conditions: { Ready: 'True NamespaceReady', InsufficientTokens: 'True TokensSpent' },
    },
    {
      name: 'tokens-left',
      health: 'Healthy',
      conditions: { Ready: 'True NamespaceReady', InsufficientTokens: 'False TokensLeft' },
    },
  ],

  CatalogStream: [
    ...COMMON,
    {
      name: 'published',
      health: 'Healthy',
      conditions: { Ready: 'True QueueReady', Published: 'True Published' },
    },
    {
      name: 'deprecated',
      health: 'Healthy',
      by: ['Published'],
      conditions: { Ready: 'True QueueReady', Published: 'False Deprecated' },
    },
    {
      name: 'unpublished-without-workspace',
      health: 'Progressing',
      conditions: {
        Ready: 'Unknown WaitingForWorkspace',
        Reconciling: 'True Progressing',
        Published: 'Unknown WaitingForWorkspace',
      },
    },
    {
      name: 'delivering-the-rest',
      health: 'Progressing',
      conditions: { Ready: 'False Draining', Reconciling: 'True Draining', Published: 'True Published' },
    },
  ],

  Package: [
    ...COMMON,
    { name: 'all-found', health: 'Healthy', conditions: { Ready: 'True Compiled', StreamsResolved: 'True AllFound' } },
    {
      name: 'streams-missing',
      health: 'Healthy',
      by: ['StreamsResolved'],
      conditions: { Ready: 'True Compiled', StreamsResolved: 'False StreamsMissing' },
    },
    {
      name: 'still-blocking',
      health: 'Progressing',
      conditions: { Ready: 'False StillBlocking', Reconciling: 'True Progressing', StreamsResolved: 'True AllFound' },
    },
  ],

  Integration: [
    ...COMMON,
    {
      name: 'invited',
      health: 'Healthy',
      by: ['Accepted'],
      conditions: { Ready: 'True Pending', Accepted: 'False Pending', InvitationSent: 'True Sent' },
    },
    {
      name: 'invited-by-secret',
      health: 'Healthy',
      by: ['Accepted'],
      conditions: { Ready: 'True Pending', Accepted: 'False Pending', InvitationSent: 'True SecretWritten' },
    },
    {
      name: 'mail-refused',
      health: 'Healthy',
      by: ['Accepted', 'InvitationSent'],
      conditions: { Ready: 'True Pending', Accepted: 'False Pending', InvitationSent: 'False SmtpFailed' },
    },
    {
      name: 'mail-to-address-held',
      health: 'Healthy',
      by: ['Accepted', 'InvitationSent'],
      conditions: { Ready: 'True Pending', Accepted: 'False Pending', InvitationSent: 'False AddressLimitReached' },
    },
    {
      name: 'mail-of-account-held',
      health: 'Healthy',
      by: ['Accepted', 'InvitationSent'],
      conditions: { Ready: 'True Pending', Accepted: 'False Pending', InvitationSent: 'False AccountLimitReached' },
    },
    {
      name: 'secret-refused',
      health: 'Healthy',
      by: ['Accepted', 'InvitationSent'],
      conditions: { Ready: 'True Pending', Accepted: 'False Pending', InvitationSent: 'False SecretFailed' },
    },
    {
      name: 'accepted',
      health: 'Healthy',
      conditions: {
        Ready: 'True Active',
        Accepted: 'True InvitationAccepted',
        Admitted: 'True InvitationAccepted',
        InvitationSent: 'True Sent',
      },
    },
    {
      name: 'subscribed',
      health: 'Healthy',
      conditions: { Ready: 'True Active', Accepted: 'True DirectGrant', Admitted: 'True Subscribed' },
    },
    {
      name: 'not-admitted',
      health: 'Healthy',
      by: ['Admitted'],
      conditions: { Ready: 'True Active', Accepted: 'True DirectGrant', Admitted: 'False WorkspaceNotAdmitting' },
    },
    ...(['Declined', 'Expired', 'Revoked'] as const).map(
      end =>
        ({
          name: end.toLowerCase(),
          health: 'Healthy',
          by: ['Accepted'],
          conditions: { Ready: 'True Closed', Accepted: `False ${end}` },
        }) as const,
    ),
  ],

  Activation: [
    ...COMMON,
    { name: 'routing', health: 'Healthy', conditions: { Ready: 'True GateOpen', Effective: 'True Routing' } },
    ...(['IntegrationPending', 'IntegrationClosed'] as const).map(
      reason =>
        ({
          name: reason === 'IntegrationPending' ? 'integration-pending' : 'integration-closed',
          health: 'Healthy',
          by: ['Effective'],
          conditions: { Ready: 'True GateOpen', Effective: `False ${reason}` },
        }) as const,
    ),
    ...(['Revoked', 'RevokedElsewhere'] as const).map(
      reason =>
        ({
          name: reason === 'Revoked' ? 'revoked' : 'revoked-elsewhere',
          health: 'Healthy',
          by: ['Effective'],
          conditions: { Ready: 'True GateClosed', Effective: `False ${reason}` },
        }) as const,
    ),
    {
      name: 'waiting-for-integration',
      health: 'Progressing',
      conditions: { Ready: 'Unknown WaitingForIntegration', Reconciling: 'True Progressing' },
    },
    {
      name: 'integration-missing',
      health: 'Degraded',
      by: ['Stalled'],
      conditions: { Ready: 'False WaitingForIntegration', Stalled: 'True WaitingForIntegration' },
    },
  ],

  Block: [
    ...COMMON,
    { name: 'enforced', health: 'Healthy', conditions: { Ready: 'True Applied', Enforced: 'True Enforced' } },
    ...(['WaitingForIntegration', 'WaitingForTarget'] as const).flatMap(reason => {
      const what = reason === 'WaitingForTarget' ? 'target' : 'integration';
      return [
        {
          name: `waiting-for-${what}`,
          health: 'Progressing',
          conditions: { Ready: `Unknown ${reason}`, Reconciling: 'True Progressing', Enforced: `Unknown ${reason}` },
        },
        {
          name: `${what}-missing`,
          health: 'Degraded',
          by: ['Stalled'],
          conditions: { Ready: `False ${reason}`, Stalled: `True ${reason}`, Enforced: `Unknown ${reason}` },
        },
      ] as const;
    }),
  ],

  Subscription: SUBSCRIPTIONS,
};
