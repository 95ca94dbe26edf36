import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { issueInvitation } from '../../../core/ids/invitation.ts';
import { integrationState } from '../../../core/routing/integration-state.ts';
import { managedFieldsOf, partsOf } from '../../../kube/managed-fields.ts';
import { type AnyObject, keyOf, timestampOf } from '../../../kube/object.ts';
import { resourceOf } from '../../../kube/resource.ts';
import type { Cached } from '../../caches/caches.ts';
import { type Context, hasAdopted, ownsNamespace } from '../../context/context.ts';
import { settled, settledClosing } from '../../context/paused.ts';
import { findCondition } from '../../engine/conditions.ts';
import type { Deliveries } from './deliveries.ts';
import { needsInvitation, planInvitation } from './invitation.ts';
import { planIntegration } from './plan.ts';

/**
 * Returns true if the partner accepted the invitation through the REST API, and false if the producer granted access
 * directly. Requires reading the object from the API server once; afterwards, we can rely on the condition.
 */
async function wasAccepted({ client }: Context, { metadata, spec, status }: Cached<'Integration'>): Promise<boolean> {
  const { InvitationAccepted, DirectGrant } = REASON.Integration.Accepted;
  const recorded = findCondition(status?.conditions, CONDITION.Integration.Accepted)?.reason;
  if (recorded === InvitationAccepted || recorded === DirectGrant) return recorded === InvitationAccepted;
  if (spec.invitedEmail === undefined && status?.invitation === undefined) return false;
  const object = await client.get<AnyObject>(resourceOf('Integration'), metadata);
  return managedFieldsOf(object ?? { metadata: {} }).some(
    entry => entry.manager === FIELD_MANAGER.facadeAcceptance && partsOf(entry, 'workspace') !== undefined,
  );
}

/** Returns true if a Subscription in the workspace specified in the spec uses the integration. */
function isSubscribed({ caches }: Context, { metadata, spec }: Cached<'Integration'>): boolean {
  return caches.Subscription.store
    .byIndex('integration', keyOf(metadata))
    .some(subscription => subscription.metadata.namespace === spec.workspace);
}

/**
 * Reconciles an Integration, and issues its invitation. Sending is left to `deliver.ts` so that the Ready condition
 * does not depend on the mail server.
 */
export function reconcileIntegration(context: Context & { readonly deliveries: Pick<Deliveries, 'of'> }) {
  return async (integration: Cached<'Integration'>) => {
    const { metadata, spec, status } = integration;
    const namespace = metadata.namespace as string;
    const workspaceExists = context.caches.Workspace.store.get(namespace) !== undefined;
    const settle = isEnded(integration) ? settledClosing : settled;
    if (workspaceExists) await settle(context, namespace, integration);
    const nowMs = context.wallMs();
    const invited = spec.invitedEmail !== undefined;
    const before = status?.invitation;
    const state = integrationState({ spec, ...expiryOf(before) }, nowMs);
    const needed = invited && state === 'Pending' && needsInvitation(context.keys, metadata.uid, before);
    const issuing = needed && ownsNamespace(context.caches, namespace);
    const current = issuing ? issueInvitation(context.keys.first().secret, metadata.uid, timestampOf(nowMs)) : before;
    const id = { uid: metadata.uid, issuedAt: current?.issuedAt ?? '' };
    const invitation = planInvitation({
      name: metadata.name,
      state,
      invitation: current,
      delivery: context.deliveries.of(`${namespace}/${metadata.name}`, id),
      recorded: findCondition(status?.conditions, CONDITION.Integration.InvitationSent),
    });
    const outcome = planIntegration({
      namespace,
      name: metadata.name,
      state,
      accepted: state === 'Active' && (await wasAccepted(context, integration)),
      workspace: spec.workspace,
      subscribed: isSubscribed(context, integration),
      workspaceExists: workspaceExists && (hasAdopted(context.caches, namespace) || isEnded(integration)),
      invitation: needed && !issuing ? undefined : invitation,
    });
    const { expiresMs } = expiryOf(current);
    const endsInMs = state === 'Pending' && expiresMs !== undefined ? expiresMs - nowMs : undefined;
    return { ...outcome, ...(endsInMs === undefined ? {} : { requeueAfterMs: Math.max(1_000, endsInMs) }) };
  };
}

/** Returns true if the integration has ended. The end takes effect even if the workspace is paused. */
export function isEnded({ spec }: Pick<Cached<'Integration'>, 'spec'>): boolean {
  return spec.revoked === true || spec.declined === true;
}

function expiryOf(invitation: { readonly expiresAt?: string | undefined } | undefined): {
  readonly expiresMs?: number;
} {
  return invitation?.expiresAt === undefined ? {} : { expiresMs: Date.parse(invitation.expiresAt) };
}
