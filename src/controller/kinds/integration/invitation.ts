import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { IntegrationStatus } from '../../../api/kinds/integration.ts';
import { type IssuedInvitation, isDerivable } from '../../../core/ids/invitation.ts';
import type { IntegrationState } from '../../../core/routing/integration-state.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import type { EventNote } from '../../engine/outcome.ts';

const { InvitationSent } = CONDITION.Integration;
const reason = REASON.Integration.InvitationSent;

type Invitation = NonNullable<IntegrationStatus['invitation']>;

/** Result of sending an invitation: when and how, or why not. */
export type Delivery =
  | { readonly sentAt: string; readonly as: 'Sent' | 'SecretWritten' }
  | { readonly failed: 'SmtpFailed' | 'SecretFailed'; readonly code: string };

const MESSAGE = {
  Sent: 'the mail server accepted the invitation',
  SecretWritten:
    'no mail server is configured, so the token is stored in the Secret <name>-invitation in this namespace',
  SmtpFailed: 'the mail server did not accept the invitation',
  SecretFailed: 'the controller could not write the Secret with the token',
} as const;

/** Returns the invitation if it is complete. A status that has lost a part of it counts as none. */
export function wholeInvitation(invitation: Invitation | undefined): (Invitation & IssuedInvitation) | undefined {
  const { tokenHash, issuedAt, expiresAt } = invitation ?? {};
  if (tokenHash === undefined || issuedAt === undefined || expiresAt === undefined) return undefined;
  return { ...invitation, tokenHash, issuedAt, expiresAt };
}

/**
 * Returns whether a Pending integration needs a new invitation: it has none, or one that was never sent and whose token
 * cannot be derived any more (another root key, or a status copied from another object). An invitation that may have
 * reached the partner stays valid.
 */
export function needsInvitation(rootKey: Uint8Array, uid: string, current: Invitation | undefined): boolean {
  const whole = wholeInvitation(current);
  return whole === undefined || (whole.sentAt === undefined && !isDerivable(rootKey, uid, whole));
}

export interface InvitationFacts {
  readonly state: IntegrationState;
  /** From the status, or just issued. */
  readonly invitation: Invitation | undefined;
  /** Result of sending this invitation, if this process knows it. */
  readonly delivery: Delivery | undefined;
  /** The condition in the status now. */
  readonly recorded: Condition | undefined;
}

export interface InvitationPlan {
  readonly invitation: Invitation | undefined;
  readonly conditions: readonly DesiredCondition[];
  readonly events: readonly EventNote[];
}

/** Returns the part of an integration's status that describes its invitation. */
export function planInvitation({ state, invitation, delivery, recorded }: InvitationFacts): InvitationPlan {
  const whole = wholeInvitation(invitation);
  if (whole === undefined) return { invitation, conditions: [], events: [] };
  if (whole.sentAt !== undefined) {
    // After a change of leaders only the condition has how it was sent.
    return { invitation, conditions: recorded?.status === 'True' ? [kept(recorded)] : [sent('Sent')], events: [] };
  }
  if (delivery !== undefined && 'sentAt' in delivery) {
    const message = MESSAGE[delivery.as];
    return {
      invitation: { ...whole, sentAt: delivery.sentAt },
      conditions: [sent(delivery.as)],
      events: [{ type: 'Normal', reason: `Invitation${delivery.as}`, message }],
    };
  }
  // No retry once it is answered, revoked or expired.
  if (state !== 'Pending') return { invitation, conditions: [], events: [] };
  if (delivery === undefined)
    return { invitation, conditions: recorded?.status === 'False' ? [kept(recorded)] : [], events: [] };
  const message = `${MESSAGE[delivery.failed]} (${delivery.code}). The controller will retry`;
  return {
    invitation,
    conditions: [{ type: InvitationSent, status: 'False', reason: reason[delivery.failed], message }],
    events: [{ type: 'Warning', reason: `Invitation${delivery.failed}`, message }],
  };
}

function sent(as: 'Sent' | 'SecretWritten'): DesiredCondition {
  return { type: InvitationSent, status: 'True', reason: reason[as], message: MESSAGE[as] };
}

function kept({ type, status, reason, message }: Condition): DesiredCondition {
  return { type, status, reason, message };
}
