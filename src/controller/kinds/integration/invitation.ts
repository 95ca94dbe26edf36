import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { IntegrationStatus } from '../../../api/kinds/integration.ts';
import { type IssuedInvitation, isDerivable } from '../../../core/ids/invitation.ts';
import type { IntegrationState } from '../../../core/routing/integration-state.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import type { EventNote } from '../../engine/outcome.ts';

const { InvitationSent } = CONDITION.Integration;
const reason = REASON.Integration.InvitationSent;

type Invitation = NonNullable<IntegrationStatus['invitation']>;

/** What came of handing the token over: it was, at that time, or it could not be. */
export type Delivery =
  | { readonly sentAt: string; readonly as: 'Sent' | 'SecretWritten' }
  | { readonly failed: 'SmtpFailed' | 'SecretFailed'; readonly code: string };

const MESSAGE = {
  Sent: 'the mail server took the invitation',
  SecretWritten: 'there is no mail server; the token is in a Secret beside this object',
  SmtpFailed: 'the mail server did not take the invitation',
  SecretFailed: 'the Secret with the token could not be written',
} as const;

/** The invitation if all of it is there; what is left of a status that was half lost is none. */
export function wholeInvitation(invitation: Invitation | undefined): (Invitation & IssuedInvitation) | undefined {
  const { tokenHash, issuedAt, expiresAt } = invitation ?? {};
  if (tokenHash === undefined || issuedAt === undefined || expiresAt === undefined) return undefined;
  return { ...invitation, tokenHash, issuedAt, expiresAt };
}

/**
 * Whether an integration that is Pending needs a (new) invitation: it has none, or one that was never handed over and
 * whose token cannot be made any more (another root key, a status that was copied from another object). What a partner
 * may already have in hand stays valid.
 */
export function needsInvitation(rootKey: Uint8Array, uid: string, current: Invitation | undefined): boolean {
  const whole = wholeInvitation(current);
  return whole === undefined || (whole.sentAt === undefined && !isDerivable(rootKey, uid, whole));
}

export interface InvitationFacts {
  readonly state: IntegrationState;
  /** As the status has it, or just issued. */
  readonly invitation: Invitation | undefined;
  /** Of this very invitation, as far as this process knows. */
  readonly delivery: Delivery | undefined;
  /** What the object says of it so far. */
  readonly said: Condition | undefined;
}

export interface InvitationPlan {
  readonly invitation: Invitation | undefined;
  readonly conditions: readonly DesiredCondition[];
  readonly events: readonly EventNote[];
}

/** What an integration's status says of its invitation. */
export function planInvitation({ state, invitation, delivery, said }: InvitationFacts): InvitationPlan {
  const whole = wholeInvitation(invitation);
  if (whole === undefined) return { invitation, conditions: [], events: [] };
  if (whole.sentAt !== undefined) {
    // After a change of leaders nobody but the object knows how it was handed over.
    return { invitation, conditions: said?.status === 'True' ? [kept(said)] : [sent('Sent')], events: [] };
  }
  if (delivery !== undefined && 'sentAt' in delivery) {
    const message = MESSAGE[delivery.as];
    return {
      invitation: { ...whole, sentAt: delivery.sentAt },
      conditions: [sent(delivery.as)],
      events: [{ type: 'Normal', reason: `Invitation${delivery.as}`, message }],
    };
  }
  // Nobody tries again once it is answered, revoked or too late.
  if (state !== 'Pending') return { invitation, conditions: [], events: [] };
  if (delivery === undefined)
    return { invitation, conditions: said?.status === 'False' ? [kept(said)] : [], events: [] };
  const message = `${MESSAGE[delivery.failed]} (${delivery.code}); it is tried again`;
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
