import { CONDITION } from '../../api/condition-reasons.ts';
import { integrationState } from '../../core/integration-state.ts';
import { issueInvitation } from '../../core/invitation.ts';
import { ownsNamespace, type Room, timestampOf } from '../room.ts';
import { findCondition } from '../runtime/conditions.ts';
import type { Cached } from '../world.ts';
import { needsInvitation, planInvitation } from './invitation.ts';
import { planIntegration } from './plan.ts';

/**
 * An invitation is issued here and handed over elsewhere (see `deliver.ts`): Ready is answered with the hash of its token
 * and does not wait for the mail.
 */
export function reconcileIntegration(room: Room) {
  return async (integration: Cached<'Integration'>) => {
    const { metadata, spec, status } = integration;
    const namespace = metadata.namespace as string;
    const workspaceExists = room.world.Workspace.store.get(namespace) !== undefined;
    if (workspaceExists) await room.tenants.inForce(namespace, integration);
    const nowMs = room.wallMs();
    const invited = spec.invitedEmail !== undefined;
    const before = status?.invitation;
    const state = integrationState({ spec, ...expiryOf(before) }, nowMs);
    const needed = invited && state === 'Pending' && needsInvitation(room.rootKey, metadata.uid, before);
    const issuing = needed && ownsNamespace(room.world, namespace);
    const current = issuing ? issueInvitation(room.rootKey, metadata.uid, timestampOf(nowMs)) : before;
    const id = { uid: metadata.uid, issuedAt: current?.issuedAt ?? '' };
    const invitation = planInvitation({
      state,
      invitation: current,
      delivery: room.deliveries.of(`${namespace}/${metadata.name}`, id),
      said: findCondition(status?.conditions, CONDITION.Integration.InvitationSent),
    });
    const outcome = planIntegration({
      namespace,
      name: metadata.name,
      state,
      invited,
      workspaceExists,
      invitation: needed && !issuing ? undefined : invitation,
    });
    const { expiresMs } = expiryOf(current);
    const endsInMs = state === 'Pending' && expiresMs !== undefined ? expiresMs - nowMs : undefined;
    return { ...outcome, ...(endsInMs === undefined ? {} : { requeueAfterMs: Math.max(1_000, endsInMs) }) };
  };
}

function expiryOf(invitation: { readonly expiresAt?: string | undefined } | undefined): {
  readonly expiresMs?: number;
} {
  return invitation?.expiresAt === undefined ? {} : { expiresMs: Date.parse(invitation.expiresAt) };
}
