import { z } from 'zod';
import { hashInvitationToken } from '../../../core/ids/invitation.ts';
import { addressKey } from '../../../core/ids/invitation-names.ts';
import type { ProblemCode } from '../../../core/problems/problems.ts';
import type { IntegrationState } from '../../../core/routing/integration-state.ts';
import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Identity } from '../../auth/identity.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import { assertNotPaused } from '../../objects/paused.ts';

export const InvitationToken = z
  .string()
  .regex(/^sinv_[A-Za-z0-9_-]{43}$/, 'must be sinv_ followed by 43 characters; copy the token from the invitation')
  .meta({
    description: 'The invitation token from the email or the Secret. You can only use it once.',
    example: `sinv_${'A'.repeat(43)}`,
  });

/** Returns the namespace and the integration name. */
export function integrationName({ metadata }: Cached<'Integration'>) {
  return { namespace: metadata.namespace as string, name: metadata.name };
}

/** Returns the problem if the invitation can no longer be answered, or undefined otherwise. */
export function whyAnswered(state: IntegrationState): ProblemCode | undefined {
  if (state === 'Pending') return undefined;
  return state === 'Expired' ? 'invitation_expired' : 'invitation_used';
}

/**
 * Uses the API server to read the integration for an invitation token. Also returns the state of the integration.
 *
 * @throws Refusal 404 `unknown_invitation`, 409 `workspace_paused`
 */
export async function findInvitation(
  { caches, wallMs }: Facade,
  token: string,
): Promise<{ readonly integration: Cached<'Integration'>; readonly state: IntegrationState }> {
  const hash = hashInvitationToken(token);
  const found = await caches.findBy('Integration', 'tokenHash', hash);
  const integration = found && (await caches.live('Integration', integrationName(found)));
  const isThere = integration !== undefined && integration.metadata.deletionTimestamp === undefined;
  if (!isThere || integration.status?.invitation?.tokenHash !== hash) throw new Refusal('unknown_invitation');
  assertNotPaused(caches.get('Workspace', { name: integrationName(integration).namespace }));
  return { integration, state: integrationStatus(integration, wallMs()) };
}

/**
 * Checks that the caller has the invited email address, if the operator requires that.
 *
 * @throws Refusal 403 `invitation_email_mismatch`
 */
export function assertInvited(
  { requireInvitedEmail }: Pick<Facade, 'requireInvitedEmail'>,
  identity: Pick<Identity, 'email'>,
  { spec }: Pick<Cached<'Integration'>, 'spec'>,
): void {
  if (!requireInvitedEmail) return;
  const { email } = identity;
  const { invitedEmail } = spec;
  const isInvited = email !== undefined && invitedEmail !== undefined && addressKey(email) === addressKey(invitedEmail);
  if (!isInvited) throw new Refusal('invitation_email_mismatch');
}
