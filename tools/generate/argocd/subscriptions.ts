import { COMMON, type Scenario } from './scenario.ts';

const NOT_LIVE = { Live: 'False NotAdmitted' } as const;
const ADMITTED = { Ready: 'True Admitted' } as const;
const LIVE = { ...ADMITTED, Live: 'True Live' } as const;

/**
 * The reasons why an admitted subscription does not deliver. Only problems that the owner has to resolve are Degraded.
 */
const HELD = {
  Blocked: 'Healthy',
  Suspended: 'Healthy',
  InsufficientTokens: 'Healthy',
  EndpointRefused: 'Degraded',
  WaitingForSecret: 'Degraded',
  HeaderNotReadable: 'Degraded',
  WaitingForConsent: 'Degraded',
  SigningKeyMissing: 'Degraded',
  SpecRefused: 'Degraded',
} as const;

/** Returns a name in kebab case. */
function nameOf(reason: string): string {
  return reason.replaceAll(/(?<=.)(?=[A-Z])/g, '-').toLowerCase();
}

/** Returns the scenarios of Subscriptions. */
export const SUBSCRIPTIONS: readonly Scenario<'Subscription'>[] = [
  ...COMMON,
  { name: 'live', health: 'Healthy', conditions: LIVE },
  ...(['WaitingForGrant', 'WaitingForStream'] as const).map(
    reason =>
      ({
        name: nameOf(reason),
        health: 'Progressing',
        conditions: { Ready: `Unknown ${reason}`, Reconciling: 'True Progressing', ...NOT_LIVE },
      }) as const,
  ),
  ...(['WaitingForStream', 'StreamDeprecated', 'Duplicate'] as const).map(
    reason =>
      ({
        name: reason === 'WaitingForStream' ? 'stream-missing' : reason === 'Duplicate' ? 'second' : nameOf(reason),
        health: 'Degraded',
        by: ['Stalled'],
        conditions: { Ready: `False ${reason}`, Stalled: `True ${reason}`, ...NOT_LIVE },
      }) as const,
  ),
  ...(Object.keys(HELD) as (keyof typeof HELD)[]).map(
    reason =>
      ({
        name: nameOf(reason),
        health: HELD[reason],
        by: ['Live'],
        conditions: { ...ADMITTED, Live: `False ${reason}` },
      }) as const,
  ),
  {
    name: 'endpoint-disabled',
    health: 'Degraded',
    by: ['Live'],
    conditions: {
      ...ADMITTED,
      Live: 'False EndpointDisabled',
      EndpointFailing: 'False EndpointDisabled',
      BacklogAtRisk: 'True NearRetention',
    },
  },
  ...(['FailingOneDay', 'FailingThreeDays', 'FailingFourDays'] as const).map(
    reason =>
      ({
        name: nameOf(reason),
        health: 'Healthy',
        by: ['EndpointFailing'],
        conditions: { ...LIVE, EndpointFailing: `True ${reason}` },
      }) as const,
  ),
  {
    name: 'recovered',
    health: 'Healthy',
    conditions: { ...LIVE, EndpointFailing: 'False Recovered', BacklogAtRisk: 'False WithinRetention' },
  },
  {
    name: 'blocked-with-backlog',
    health: 'Healthy',
    by: ['Live', 'BacklogAtRisk'],
    conditions: { ...ADMITTED, Live: 'False Blocked', BacklogAtRisk: 'True NearRetention' },
  },
  ...(['NameTaken', 'Refused'] as const).map(
    reason =>
      ({
        name: `secret-${nameOf(reason)}`,
        health: 'Healthy',
        by: ['SecretMirrored'],
        conditions: { ...LIVE, SecretMirrored: `False ${reason}` },
      }) as const,
  ),
];
