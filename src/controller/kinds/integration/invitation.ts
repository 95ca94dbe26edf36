import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { IntegrationStatus } from '../../../api/kinds/integration.ts';
import { invitationSecretName } from '../../../api/well-known.ts';
import type { KeyRing } from '../../../core/delivery/key-ring.ts';
import { findInvitationToken, type IssuedInvitation } from '../../../core/ids/invitation.ts';
import type { IntegrationState } from '../../../core/routing/integration-state.ts';
import { keyOf } from '../../../kube/object.ts';
import type { Caches } from '../../caches/caches.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import type { EventNote } from '../../engine/outcome.ts';

const { InvitationSent } = CONDITION.Integration;
const reason = REASON.Integration.InvitationSent;

type Invitation = NonNullable<IntegrationStatus['invitation']>;

/** An email that has to wait because of a limit. */
export interface HeldBack {
  readonly held: 'AddressLimitReached' | 'AccountLimitReached';
  /** Time (RFC 3339) at which the controller retries. */
  readonly until: string;
}

/** The result of sending an invitation: the time and method, or the reason why it wasn't sent. */
export type Delivery =
  | { readonly sentAt: string; readonly as: 'Sent' | 'SecretWritten' }
  | HeldBack
  | { readonly failed: 'SmtpFailed'; readonly code: string }
  /** `fault` describes how to fix it, if the API server has rejected the Secret. */
  | { readonly failed: 'SecretFailed'; readonly code: string; readonly fault?: string };

const MESSAGE = {
  Sent: 'the mail server accepted the invitation',
  SmtpFailed: 'the mail server did not accept the invitation',
  SecretFailed: 'the controller could not write the Secret with the token',
  AddressLimitReached:
    'this workspace has sent an invitation to the address in the last 24 hours. The controller will send this invitation at',
  AccountLimitReached:
    'the account has sent the maximum number of invitations for 24 hours (invitationMailsPerDay). The controller will send this invitation when the limit allows it, at the earliest at',
} as const;

const writtenTo = (secret: string) =>
  `no mail server is configured, so the token is stored in the Secret ${secret} in this namespace`;

/** Returns the invitation if it is complete, or undefined if the status is missing any of its fields. */
export function wholeInvitation(invitation: Invitation | undefined): (Invitation & IssuedInvitation) | undefined {
  const { tokenHash, issuedAt, expiresAt } = invitation ?? {};
  if (tokenHash === undefined || issuedAt === undefined || expiresAt === undefined) return undefined;
  return { ...invitation, tokenHash, issuedAt, expiresAt };
}

/**
 * Returns true if a Pending integration needs a new invitation, which is the case if there is no invitation, or if the
 * invitation was never sent and its token can no longer be derived because the root key was removed or the status was
 * copied from another object. Invitations which may have reached the partner remain valid.
 */
export function needsInvitation(keys: Pick<KeyRing, 'all'>, uid: string, current: Invitation | undefined): boolean {
  const whole = wholeInvitation(current);
  if (whole === undefined) return true;
  return whole.sentAt === undefined && findInvitationToken(keys.all(), uid, whole) === undefined;
}

/** Returns the keys of all integrations whose invitation has not been sent yet. */
export function unsentInvitations({ Integration }: Pick<Caches, 'Integration'>): string[] {
  return [...Integration.store.values()]
    .filter(({ status }) => status?.invitation?.tokenHash !== undefined && status.invitation.sentAt === undefined)
    .map(({ metadata }) => keyOf(metadata));
}

export interface InvitationFacts {
  /** The Integration's name. */
  readonly name: string;
  readonly state: IntegrationState;
  /** The invitation from the status, or one that was just issued. */
  readonly invitation: Invitation | undefined;
  /** The result of sending this invitation, if known to this process. */
  readonly delivery: Delivery | undefined;
  /** Condition currently in the status. */
  readonly recorded: Condition | undefined;
}

export interface InvitationPlan {
  readonly invitation: Invitation | undefined;
  readonly conditions: readonly DesiredCondition[];
  readonly events: readonly EventNote[];
}

/** Returns the parts of an integration status, both fields and conditions, that describe the invitation. */
export function planInvitation({ name, state, invitation, delivery, recorded }: InvitationFacts): InvitationPlan {
  const whole = wholeInvitation(invitation);
  if (whole === undefined) return { invitation, conditions: [], events: [] };
  if (whole.sentAt !== undefined) {
    // After a change of the leader, the delivery method is only available in the condition.
    return {
      invitation,
      conditions: recorded?.status === 'True' ? [kept(recorded)] : [sent('Sent', MESSAGE.Sent)],
      events: [],
    };
  }
  if (delivery !== undefined && 'sentAt' in delivery) {
    const message = delivery.as === 'Sent' ? MESSAGE.Sent : writtenTo(invitationSecretName(name));
    return {
      invitation: { ...whole, sentAt: delivery.sentAt },
      conditions: [sent(delivery.as, message)],
      events: [{ type: 'Normal', reason: `Invitation${delivery.as}`, message }],
    };
  }
  // Don't retry an invitation that has been answered or revoked or has expired.
  if (state !== 'Pending') return { invitation, conditions: [], events: [] };
  if (delivery === undefined)
    return { invitation, conditions: recorded?.status === 'False' ? [kept(recorded)] : [], events: [] };
  if ('held' in delivery) {
    const { held, until } = delivery;
    const condition = { type: InvitationSent, status: 'False', reason: reason[held] } as const;
    return { invitation, conditions: [{ ...condition, message: `${MESSAGE[held]} ${until}` }], events: [] };
  }
  const fault = 'fault' in delivery ? `: ${delivery.fault}` : '';
  const message = `${MESSAGE[delivery.failed]} (${delivery.code})${fault}. The controller will retry`;
  return {
    invitation,
    conditions: [{ type: InvitationSent, status: 'False', reason: reason[delivery.failed], message }],
    events: [{ type: 'Warning', reason: `Invitation${delivery.failed}`, message }],
  };
}

function sent(as: 'Sent' | 'SecretWritten', message: string): DesiredCondition {
  return { type: InvitationSent, status: 'True', reason: reason[as], message };
}

function kept({ type, status, reason, message }: Condition): DesiredCondition {
  return { type, status, reason, message };
}
