import type { IntegrationSpec, IntegrationStatus } from '../../../api/kinds/integration.ts';
import type { KeyRing } from '../../../core/delivery/key-ring.ts';
import { findInvitationToken } from '../../../core/ids/invitation.ts';
import { integrationState } from '../../../core/routing/integration-state.ts';
import { findCondition } from '../../engine/conditions.ts';
import { type Delivery, wholeInvitation } from './invitation.ts';

/** The task for an invitation's token. */
export type InvitationTask =
  | { readonly do: 'nothing' }
  /** `again` means that the Secret was written before, but has been changed or deleted since then. */
  | (HandOver & { readonly do: 'mail'; readonly to: string })
  | (HandOver & { readonly do: 'write-secret'; readonly again: boolean })
  /** Removes a token that is no longer valid from the Secret. */
  | { readonly do: 'empty-secret' };

interface HandOver {
  readonly token: string;
  readonly issuedAt: string;
  readonly expiresAt: string;
}

export interface InvitationTaskFacts {
  readonly uid: string;
  readonly spec: IntegrationSpec;
  readonly status: IntegrationStatus | undefined;
  /** SHA-256 hash of the token in the invitation Secret. Undefined if the Secret is missing or empty. */
  readonly secretSha256: string | undefined;
  /** The result of sending this invitation, before it has been added to the status. */
  readonly delivery: Delivery | undefined;
  readonly hasMailServer: boolean;
  readonly keys: Pick<KeyRing, 'all'>;
  /** Current time in milliseconds since the epoch. */
  readonly nowMs: number;
}

/**
 * Returns what to do with an invitation's token. The token is not sent before its hash has been added to the
 * status, because it can't be accepted until then.
 */
export function planInvitationTask(facts: InvitationTaskFacts): InvitationTask {
  const { uid, spec, status, secretSha256, keys } = facts;
  const invitation = wholeInvitation(status?.invitation);
  const expiresMs = invitation === undefined ? {} : { expiresMs: Date.parse(invitation.expiresAt) };
  if (integrationState({ spec, ...expiresMs }, facts.nowMs) !== 'Pending') {
    return { do: secretSha256 === undefined ? 'nothing' : 'empty-secret' };
  }
  const to = spec.invitedEmail;
  const token = invitation && findInvitationToken(keys.all(), uid, invitation);
  if (invitation === undefined || to === undefined || token === undefined) return { do: 'nothing' };
  const { issuedAt, expiresAt, sentAt, tokenHash } = invitation;
  const handOver = { token, issuedAt, expiresAt };
  if (sentAt !== undefined) {
    const reason = findCondition(status?.conditions, 'InvitationSent')?.reason;
    const damaged = reason === 'SecretWritten' && secretSha256 !== tokenHash;
    return damaged ? { ...handOver, do: 'write-secret', again: true } : { do: 'nothing' };
  }
  if (facts.delivery !== undefined && 'sentAt' in facts.delivery) return { do: 'nothing' };
  return facts.hasMailServer ? { ...handOver, do: 'mail', to } : { ...handOver, do: 'write-secret', again: false };
}
